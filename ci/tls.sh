#!/usr/bin/env bash
# The examples over TLS and websockets: lints, tests, and what curl and openssl make of them, installed if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

features=tls-examples,websocket-examples
cargo clippy -p fibra --all-targets --features "$features" -- -D warnings
cargo test -p fibra --features "$features" --test https_get --test 'tls*' --test 'websocket*'
cargo test -p fibra --features "$features" --test malformed websocket

# Is the tool there, or can it be had? Packages of Debian's are called as the tools are.
have() {
    command -v "$1" >/dev/null && return
    [[ $EUID == 0 ]] || return
    { apt-get update && apt-get install --yes --no-install-recommends "$1"; } >/dev/null 2>&1
}
for tool in curl openssl; do
    if have "$tool"; then
        cargo test -p fibra --features "$features" --test tls_tools -- --ignored "$tool"
    else
        echo "skipped: there is no $tool, and it cannot be installed"
    fi
done
