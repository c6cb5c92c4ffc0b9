#!/usr/bin/env bash
# Tests the tools that look at other processes, in release too: linkers drop what no code uses there.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test -p fibra-tools
cargo test --release -p fibra-tools --tests
