#!/usr/bin/env bash
# Do the docs build without a warning, those for users and those for contributors? And does what must not compile fail by the
# very error that its test names?
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTDOCFLAGS="-D warnings"
cargo doc --workspace --no-deps
cargo doc --workspace --no-deps --document-private-items
# The stable rustdoc does not look at the codes.
RUSTC_BOOTSTRAP=1 cargo test --doc -p fibra-runtime -p fibra-sync -- "compile fail"
