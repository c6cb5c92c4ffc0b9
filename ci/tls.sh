#!/usr/bin/env bash
# The examples over TLS and websockets: lints, tests, and what curl and openssl make of them, installed if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/have

features=tls-examples,websocket-examples
cargo clippy -p fibra --all-targets --features "$features" -- -D warnings
cargo test -p fibra --features "$features" --test https_get --test 'tls*' --test 'websocket*'
cargo test -p fibra --features "$features" --test malformed websocket

for tool in curl openssl; do
    if have "$tool"; then
        cargo test -p fibra --features "$features" --test tls_tools -- --ignored "$tool"
    fi
done
