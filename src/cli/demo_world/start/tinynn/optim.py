"""Optimizers: each has a method `move` that changes weights in place."""


class Sgd:
    """Gradient descent."""

    def __init__(self, lr):
        self.lr = lr

    def move(self, weights, slopes):
        for i, slope in enumerate(slopes):
            weights[i] -= self.lr * slope
