#!/bin/sh
# Bad (1): the log shows a loss that is NaN or infinite.
# Good (0): the command succeeds and it does not.
# Skip (125): the command fails in another way.
#
# usage: loss_nan.sh COMMAND...      e.g. loss_nan.sh python3 train.py --seed "$FBISECT_SEED"
#
# The pattern fits "loss nan", "loss=nan", "loss: inf", "loss is NaN"; change it for your log.

[ $# -gt 0 ] || { echo "usage: loss_nan.sh COMMAND..." >&2; exit 125; }
log=$(mktemp) || exit 125
trap 'rm -f "$log"' EXIT

"$@" >"$log" 2>&1
status=$?
cat "$log"

if grep -Eiq 'loss( is)?[=: ]+[-+]?(nan|inf|infinity)([^a-z]|$)' "$log"; then
    exit 1
fi
[ "$status" -eq 0 ] || exit 125
