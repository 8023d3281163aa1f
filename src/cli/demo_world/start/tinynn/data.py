"""Days of a weather station, made up from a seed."""

import random

from tinynn import _tables

READINGS = 3
KINDS = 3


def make(count, seed):
    """`count` days: (pressure above normal in Pa, temperature in C, humidity in %) and kind."""
    rng = random.Random(seed)
    days = []
    for _ in range(count):
        kind = rng.randrange(KINDS)
        center = _tables.CENTERS[kind]
        spread = _tables.SPREADS[kind]
        readings = [rng.gauss(c, s) for c, s in zip(center, spread)]
        days.append((readings, kind))
    return days


def batch(days, step, size):
    """The step's part of the days, in turn."""
    start = step * size % len(days)
    return (days + days)[start : start + size]
