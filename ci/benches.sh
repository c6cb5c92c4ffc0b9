#!/usr/bin/env bash
# Tests the load test and the comparison with rivals. Judges no figures, which need a quiet machine.
set -euo pipefail
cd "$(dirname "$0")/.."

# Without optimization, which takes minutes for so many rivals.
cargo test -p fibra-bench --features rivals
cargo build --benches -p fibra-bench --features rivals
