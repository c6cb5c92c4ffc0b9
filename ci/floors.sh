#!/usr/bin/env bash
# Checks that no import inside a crate points upward, by the floors in its README.md. See ci/floors/src/main.rs.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test -p fibra-floors
cargo run -p fibra-floors -- "$@"
