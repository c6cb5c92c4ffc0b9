#!/usr/bin/env bash
# Do the docs build without a warning, those for users and those for contributors?
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTDOCFLAGS="-D warnings"
cargo doc --workspace --no-deps
cargo doc --workspace --no-deps --document-private-items
