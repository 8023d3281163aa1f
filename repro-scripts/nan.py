#!/usr/bin/env python3
"""Runs a training command and ends it as soon as its loss is NaN or infinite.

usage: nan.py COMMAND...      e.g. nan.py python3 -u train.py --steps 200

Bad (1): a line of the log shows a loss that is not finite.
Good (0): the command succeeds, with losses that are all finite.
Skip (125): it fails in another way, or never prints a loss: then the pattern is wrong.

Programs print at once only if they are told so: python3 -u, or PYTHONUNBUFFERED=1.
"""

import math
import re
import subprocess
import sys

GOOD, BAD, SKIP = 0, 1, 125
LOSS = re.compile(
    r"\bloss\b(?: is)?[=: ]+([-+]?(?:(?:nan|inf|infinity)\b|[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?))", re.I
)


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return SKIP
    seen = False
    try:
        child = subprocess.Popen(
            sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        print(f"nan.py: {sys.argv[1]}: {error}", file=sys.stderr)
        return SKIP
    for line in child.stdout:
        print(line, end="", flush=True)
        for value in LOSS.findall(line):
            seen = True
            if not math.isfinite(float(value)):
                child.terminate()
                try:
                    child.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    child.kill()
                return BAD
    if child.wait() != 0 or not seen:
        return SKIP
    return GOOD


sys.exit(main())
