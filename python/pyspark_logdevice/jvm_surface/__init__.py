"""The Python side of `connector/`: answers the requests of its Java classes."""
