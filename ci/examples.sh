#!/usr/bin/env bash
# Builds the examples as a user does, and runs them as tests.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --examples
cargo test --release --test examples
