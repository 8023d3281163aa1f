"""Trains the network of tinynn and stops when the loss is not a number."""

import argparse
import json
import math

from tinynn import data
from tinynn import loss
from tinynn import model
from tinynn import optim


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--config", default="config.json")
    return parser.parse_args()


def main():
    args = parse()
    with open(args.config, encoding="utf-8") as file:
        config = json.load(file)
    days = data.make(config["samples"], args.seed)
    net = model.Linear(data.READINGS, data.KINDS, args.seed)
    optimizer = optim.Sgd(config["lr"])
    for step in range(config["steps"]):
        batch = data.batch(days, step, config["batch"])
        value = net.step(batch, loss.cross_entropy, optimizer)
        if math.isnan(value):
            raise FloatingPointError(f"loss is nan at step {step}")
        print(f"step {step} loss {value:.4f}")


if __name__ == "__main__":
    main()
