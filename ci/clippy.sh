#!/usr/bin/env bash
# Lints, with warnings as errors. The feature `sanitizer` is left out: it links under AddressSanitizer only (see asan.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests and benches enable the feature `rivals`, programs alone do not.
cargo clippy --workspace --all-targets -- -D warnings
cargo clippy -p fibra-bench -- -D warnings
# Each feature for `async` crates also by itself.
for feature in futures-io hyper tokio tokio-io; do
    cargo clippy -p fibra-io --features "$feature" -- -D warnings
done
cargo clippy -p fibra -p fibra-io --all-targets --all-features -- -D warnings
