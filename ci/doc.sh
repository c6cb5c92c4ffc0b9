#!/usr/bin/env bash
# Builds the docs for users, with all features, and those for contributors, with warnings as errors. Checks that code that must
# not compile fails by the error that its test names.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTDOCFLAGS="-D warnings"
cargo doc --workspace --no-deps --features fibra/futures-io,fibra/hyper,fibra/tokio,fibra/metrics,fibra/tracing,fibra-io/compat-tests
cargo doc --workspace --no-deps --document-private-items
# The stable rustdoc does not compare the codes.
RUSTC_BOOTSTRAP=1 cargo test --doc -p fibra-runtime -p fibra-sync -- "compile fail"
