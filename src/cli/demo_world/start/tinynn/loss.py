"""Losses: the value, and its slope at each logit."""

import math

from tinynn.mathx import exp

TINY = 1e-12


def softmax(logits):
    """Probabilities from logits."""
    top = max(logits)
    exps = [exp(z - top) for z in logits]
    total = sum(exps)
    return [e / total for e in exps]


def cross_entropy(logits, kind):
    """How surprised the model is by `kind`."""
    probs = softmax(logits)
    value = -math.log(max(probs[kind], TINY))
    slope = [p - (k == kind) for k, p in enumerate(probs)]
    return value, slope
