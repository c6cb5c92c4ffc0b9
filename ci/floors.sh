#!/usr/bin/env bash
# Does every import inside a crate point downward, as the floors in its README.md say? See ci/floors/src/main.rs.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test -p fibra-floors
cargo run -p fibra-floors -- "$@"
