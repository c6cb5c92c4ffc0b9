#!/usr/bin/env bash
# Builds the examples as a user does, and runs their tests in release.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --examples
cargo test --release --test programs examples::
