#!/usr/bin/env bash
# Runs all tests, after installing what they need. `--long` runs the long checks in full.
# Needs Rust, git and Python 3.11; everything else is installed here.
set -euo pipefail
cd "$(dirname "$0")/.."

long=0
case "${1:-}" in
    "") ;;
    --long) long=1 ;;
    *) echo "usage: tests/run.sh [--long]" >&2; exit 2 ;;
esac

# What the tests call besides: a C compiler (fake GPU driver, libgit2), util-linux's `script`
# (a terminal), setsid and timeout.
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v script >/dev/null || missing+=(bsdutils)
command -v setsid >/dev/null || missing+=(util-linux)
if [ "${#missing[@]}" -gt 0 ]; then
    apt-get update -q
    apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

if [ "$long" = 1 ]; then
    export FBISECT_LONG_TESTS=1 PROPTEST_CASES=20000
fi

cargo fmt --check
cargo clippy --all-targets --locked -- -D warnings
# Examples first: some tests drive them.
cargo build --examples --locked
cargo test --locked --no-fail-fast
