#!/usr/bin/env bash
# What the features for `async` crates give: lints, docs, tests, and the examples that need them. Each feature also by itself.
set -euo pipefail
cd "$(dirname "$0")/.."

for feature in futures-io hyper tokio tokio-io; do
    cargo clippy -p fibra-io --features "$feature" -- -D warnings
done
cargo clippy -p fibra-io --all-targets --features compat-tests -- -D warnings
cargo clippy -p fibra --all-targets --features compat-examples,futures-io,tokio,tokio-io -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc -p fibra -p fibra-io --no-deps --features fibra-io/compat-tests,futures-io,hyper,tokio,tokio-io
# The features only add: the other tests of the crate would see the same code again.
cargo test -p fibra-io --features compat-tests --lib --test 'compat_*'
cargo test -p fibra-io --features compat-tests --doc
cargo test -p fibra --features compat-examples --test examples --test faults hyper
