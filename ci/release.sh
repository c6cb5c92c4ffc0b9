#!/usr/bin/env bash
# Tests the reports of stack overflows, and what takes stack, in release, where the frames differ.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --release -p fibra-runtime --test overflow --test stacks
cargo test --release -p fibra-sync --test message_stack
