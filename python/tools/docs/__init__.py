"""Makes the pages, tables and pictures of the documents that follow from the code."""
