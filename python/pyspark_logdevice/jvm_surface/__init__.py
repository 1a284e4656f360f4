"""The Python side of `connector/`: what its Java classes ask of the planner and the readers."""
