"""Models: each has a method `step` that learns from one batch."""

import random


class Linear:
    """Logits are a weighted sum of the readings."""

    def __init__(self, inputs, outputs, seed):
        rng = random.Random(seed + 1)
        self.weights = [[rng.gauss(0.0, 1.0) for _ in range(inputs)] for _ in range(outputs)]
        self.bias = [0.0] * outputs

    def logits(self, x):
        return [
            sum(w * v for w, v in zip(row, x)) + b for row, b in zip(self.weights, self.bias)
        ]

    def step(self, batch, criterion, optimizer):
        total = 0.0
        for x, kind in batch:
            value, slope = criterion(self.logits(x), kind)
            total += value
            for k, s in enumerate(slope):
                s /= len(batch)
                optimizer.move(self.weights[k], [s * v for v in x])
                self.bias[k] -= optimizer.lr * s
        return total / len(batch)
