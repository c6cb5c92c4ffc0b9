#!/usr/bin/env bash
# The models of the state machines under loom: the `tests/loom.rs` of each room that has one.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
for room in runtime sync io; do
    if [[ -e $room/tests/loom.rs ]]; then
        cargo test -p "fibra-$room" --release --test loom "$@"
    fi
done
