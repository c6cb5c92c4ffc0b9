#!/usr/bin/env bash
# Tests the tools that look at other processes, in release too: linkers drop what no code uses there. Needs gdb for its script.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/have

have gdb || true
cargo test -p fibra-tools -- --nocapture
cargo test --release -p fibra-tools --tests
