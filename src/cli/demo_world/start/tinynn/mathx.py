"""Functions of the C library without Python's exceptions."""

import math


def exp(x):
    """e to the x; infinite where it is too large to write down."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
