#!/usr/bin/env bash
# Does the load test do what it says, and do the comparisons with the rivals still build? Figures are for a quiet machine.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test -p fibra-bench
# Without the optimizer, which takes minutes over so many rivals.
cargo build --benches -p fibra-bench
