#!/usr/bin/env bash
# The models of the state machines under loom: the `tests/loom.rs` of each room that has one.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
# Most of their time is the build, which is twice as fast so.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=none
# Each run of a model maps stacks and unmaps them; two threads of one process wait for each other there, and take longer
# together than one after the other.
export RUST_TEST_THREADS=1
rooms=()
for room in runtime sync io; do
    [[ ! -e $room/tests/loom.rs ]] || rooms+=(-p "fibra-$room")
done
# With the feature a source can be registered from afar, which is modelled as well.
cargo test "${rooms[@]}" --features fibra-io/futures-io --release --test loom "$@"
