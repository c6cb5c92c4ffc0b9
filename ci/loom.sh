#!/usr/bin/env bash
# Runs the loom models of the state machines: the `tests/loom.rs` of each crate that has one.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
# Halves the build, which takes most of the time.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=none
# Each run of a model maps and unmaps stacks. Two threads of one process contend there, and take longer than one.
export RUST_TEST_THREADS=1
crates=()
for crate in runtime sync io; do
    [[ ! -e $crate/tests/loom.rs ]] || crates+=(-p "fibra-$crate")
done
cargo test "${crates[@]}" --release --test loom "$@"
