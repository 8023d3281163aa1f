# Shortcuts; `just` lists them.
default:
    @just --list

# Everything that CI runs
test:
    ./tests/run.sh

# The long checks in full (README, "Tests")
test-long:
    ./tests/run.sh --long

lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings

demo:
    cargo run --release -- demo
