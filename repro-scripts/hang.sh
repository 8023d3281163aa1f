#!/bin/sh
# Bad (124): the command is not done within LIMIT seconds.
# Good (0): it succeeds in time.
# Skip (125): it fails in time: whatever that is, it is not the hang.
#
# usage: LIMIT=300 hang.sh COMMAND...
#
# Choose LIMIT well above the slowest good run. The command gets TERM, and KILL 10 seconds later.
# `timeout` ends its whole process group. Not needed with fbisect: it has --timeout.

[ $# -gt 0 ] || { echo "usage: LIMIT=300 hang.sh COMMAND..." >&2; exit 125; }

timeout --kill-after=10 "${LIMIT:-300}" "$@"
case $? in
    0) exit 0 ;;
    124 | 137) exit 124 ;; # 137: it did not heed TERM
    *) exit 125 ;;
esac
