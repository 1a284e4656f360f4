"""The pages of docs/ that are made from the code, and the site that is made from all pages."""
