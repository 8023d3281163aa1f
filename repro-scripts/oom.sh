#!/bin/sh
# Bad (1): the command fails and says that memory ran out, on the GPU or the host.
# Good (0): it succeeds.
# Skip (125): it fails in another way.
#
# usage: oom.sh COMMAND...
#
# A kill by the kernel (137, or 128 + 9) leaves no words in the log. It counts as out of memory here;
# take it out where something else may kill.

[ $# -gt 0 ] || { echo "usage: oom.sh COMMAND..." >&2; exit 125; }
log=$(mktemp) || exit 125
trap 'rm -f "$log"' EXIT

"$@" >"$log" 2>&1
status=$?
cat "$log"

case $status in
    0) exit 0 ;;
    137) exit 1 ;;
esac
if grep -Eiq 'out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED|cudaErrorMemoryAllocation|^MemoryError' "$log"; then
    exit 1
fi
exit 125
