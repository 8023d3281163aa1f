#!/bin/sh
# Trains for a moment: exit 0, or 1 when the loss is not a number any more.
cd "$(dirname "$0")" || exit 125
exec python3 train.py --seed "${FBISECT_SEED:-0}"
