#!/usr/bin/env bash
# Lints, with warnings as errors. The feature `sanitizer` is left out: it links under AddressSanitizer alone (see asan.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests and benches come with the feature `rivals`, the programs by themselves without.
cargo clippy --workspace --all-targets -- -D warnings
cargo clippy -p fibra-bench -- -D warnings
