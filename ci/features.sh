#!/usr/bin/env bash
# Tests what features add: the adapters for `async` crates, those for the crates `metrics` and `tracing`, and the examples with
# crates of others. `ci/have` installs curl and openssl where they are missing. The features only add, so the remaining tests are left to
# `cargo test`.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/have

# Without the crate that walks stacks.
cargo clippy -p fibra --no-default-features -- -D warnings

cargo test -p fibra-io --features compat-tests --lib --test compat
cargo test -p fibra-io --features compat-tests --doc

cargo clippy -p fibra --features metrics,tracing --test metrics --test spans -- -D warnings
cargo test -p fibra --features metrics,tracing --test metrics --test spans
cargo test -p fibra --features metrics,tracing --doc -- metrics::record tracing

# One set of features for all examples, so that they are built once.
features=compat-examples,store-examples,tls-examples,websocket-examples
cargo build -p fibra --features "$features" --examples
cargo test -p fibra --features "$features" --test 'tls*' --test websocket
cargo test -p fibra --features "$features" --test programs -- hyper redis websocket
for tool in curl openssl; do
    if have "$tool"; then
        cargo test -p fibra --features "$features" --test tls_tools -- --ignored "$tool"
    fi
done
