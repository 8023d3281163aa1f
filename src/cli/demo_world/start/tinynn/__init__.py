"""A small neural network in plain Python."""
