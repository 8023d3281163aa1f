#!/bin/sh
# Finds the commit from which the demo's loss goes NaN.
# usage: find-nan.sh FOLDER
set -e
[ $# -eq 1 ] || { echo "usage: find-nan.sh FOLDER (empty, or not there yet)" >&2; exit 2; }

say() {
    echo "\$ $*"
    "$@"
}

# Makes the repository, searches it once by itself, and leaves it behind.
say fbisect demo --keep "$1"
say cd "$1"

# v0.1 trains, main does not.
say git log --oneline --graph -n 12 main

# ./build.sh fails at some commits: a skip. ./repro.sh trains for a moment, with FBISECT_SEED.
say fbisect commits v0.1..main --build ./build.sh -- ./repro.sh

# The same for a program: one JSON document on standard output.
say fbisect commits v0.1..main --json --build ./build.sh -- ./repro.sh
