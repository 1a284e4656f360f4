"""One log on one storage node: what it stores, refuses, drops and gives back."""
