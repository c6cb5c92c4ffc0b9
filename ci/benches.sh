#!/usr/bin/env bash
# Do the load test and the comparison with the rivals do what they say? Figures are for a quiet machine.
set -euo pipefail
cd "$(dirname "$0")/.."

# Without the optimizer, which takes minutes over so many rivals. What is built without them, clippy.sh sees.
cargo test -p fibra-bench --features rivals
cargo build --benches -p fibra-bench --features rivals
