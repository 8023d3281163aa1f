#!/bin/sh
# Bad (1): the command succeeds, but takes more than LIMIT seconds.
# Good (0): it succeeds in time.
# Skip (125): it fails.
#
# usage: LIMIT=60 slow.sh COMMAND...
#
# Times vary: measure both ends a few times, and put LIMIT in the middle of the gap. If there is no
# clear gap, make the run longer. Whole seconds: let the run take at least twenty. A first run that
# compiles kernels or fills caches is not the one to measure: do one step before.

[ $# -gt 0 ] || { echo "usage: LIMIT=60 slow.sh COMMAND..." >&2; exit 125; }

start=$(date +%s)
"$@" || exit 125
seconds=$(($(date +%s) - start))
echo "took $seconds s, limit ${LIMIT:-60} s"
[ "$seconds" -le "${LIMIT:-60}" ] || exit 1
