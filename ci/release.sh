#!/usr/bin/env bash
# Tests the reports of stack overflows, and what takes stack, in release, where the frames differ.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --release -p fibra-runtime --test overflow --test stacks
cargo test --release -p fibra-sync --test message_stack
# As a user builds it who has not set a profile: less is inlined, and more could be moved.
CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/default" \
    cargo test --release -p fibra-sync --test message_stack
