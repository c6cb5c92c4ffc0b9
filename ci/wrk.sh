#!/usr/bin/env bash
# Runs `http_server` under wrk, which must see no error, and compares what curl prints. Judges no figures.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/have

cargo build --release --example http_server
coproc server { exec "${CARGO_TARGET_DIR:-target}/release/examples/http_server" 127.0.0.1:0; }
pipeline=$(mktemp)
trap 'kill "${server_PID:-}" 2>/dev/null || true; rm -f "$pipeline"' EXIT
read -r _ _ address <&"${server[0]}"
url=http://$address

fail() { echo "FAILED: $*"; exit 1; }
loads() {
    local report
    # A late answer is no error: other programs use the processors too.
    report=$(wrk -t1 -c64 -d3s --timeout 60s "$@")
    echo "$report"
    ! grep -E 'Socket errors|Non-2xx' <<<"$report" || fail "wrk $*"
    grep -Eq '[1-9][0-9]* requests in' <<<"$report" || fail "wrk $*: nothing was answered"
}
if have wrk; then
    cat >"$pipeline" <<'LUA'
function init() requests = string.rep(wrk.format("GET", "/plaintext"), 16) end
function request() return requests end
LUA
    loads "$url/plaintext"
    loads "$url/json"
    loads -s "$pipeline" "$url"
    echo "wrk is content"
fi

# Compares what curl prints.
sees() {
    local seen
    seen=$(curl -s --noproxy '*' "${@:2}") || fail "curl ${*:2}"
    [[ $seen == "$1" ]] || fail "curl ${*:2} gives $seen, not $1"
}
have curl || exit 0
code=(-o /dev/null -w '%{http_code}')
sees 'Hello, World!' "$url/plaintext"
sees '{"message":"Hello, World!"}' "$url/json"
sees 13 -I -o /dev/null -w '%header{content-length}' "$url/plaintext"
sees 404 "${code[@]}" "$url/none"
sees 431 "${code[@]}" -H "long: $(printf '%016384d' 0)" "$url/plaintext"
sees 10 -o /dev/null -o /dev/null -w '%{num_connects}' "$url/plaintext" "$url/json"
echo "curl is content"
