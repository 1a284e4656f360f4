"""The Python side of `connector/`: what its Java classes ask for."""
