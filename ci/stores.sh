#!/usr/bin/env bash
# Runs the clients of the examples against Redis and PostgreSQL, and Redis's own clients against `resp_server`. `ci/have`
# installs missing programs if it runs as root, and names the checks that are skipped otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/have

# The features of features.sh, so that nothing is built twice.
features=compat-examples,store-examples,tls-examples,websocket-examples
cargo build -p fibra --features "$features" --example redis --example postgres --example resp_server
examples=${CARGO_TARGET_DIR:-target}/debug/examples

room=$(mktemp -d) started=()
cleanup() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null && wait "$process" || true; done
    rm -rf "$room"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

start() { "$@" >>"$room/log" 2>&1 & started+=($!); }
# Waits until a command succeeds.
comes() { for _ in {1..600}; do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; cat "$room/log"; echo "no: $*"; exit 1; }
free_port() { while port=$((20000 + RANDOM % 10000)); (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done; }
is() { [[ $1 == "$2" ]] || { echo "$1, expected $2"; exit 1; }; }

with_redis() {
    free_port
    start redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$room"
    comes redis-cli -p "$port" ping
    "$examples/redis" "127.0.0.1:$port"

    start "$examples/resp_server" 127.0.0.1:0
    comes grep -q 'listening on' "$room/log"
    port=$(sed -n 's/^listening on .*://p' "$room/log")
    "$examples/redis" "127.0.0.1:$port"
    ask() { redis-cli -p "$port" "$@"; }
    is "$(ask set n 41 ex 100)" OK
    is "$(ask incr n)" 42
    is "$(ask get n)" 42
    is "$(ask expire n 1000)" 1
    (($(ask ttl n) > 900))
    is "$(seq 10000 | awk '{ printf "*3\r\n$3\r\nSET\r\n$%d\r\nk%d\r\n$1\r\nv\r\n", length($0) + 1, $0 }' | ask --pipe | tail -1)" "errors: 0, replies: 10000"
    for depth in 1 16; do
        timeout 600 redis-benchmark -p "$port" -t ping,set,get,incr -n 20000 -P "$depth" --csv
    done
}

# PostgreSQL refuses to run as root.
unprivileged=()
((EUID)) || unprivileged=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)

with_postgres() {
    free_port
    echo secret >"$room/password"
    ((EUID)) || chown -R nobody "$room"
    PATH=$(dirname "$(there_is initdb)"):$PATH
    "${unprivileged[@]}" initdb -D "$room/data" -U fibra --pwfile="$room/password" -A scram-sha-256 --no-sync >>"$room/log"
    start "${unprivileged[@]}" postgres -D "$room/data" -p "$port" -k "$room" -c listen_addresses=127.0.0.1 -c fsync=off
    comes pg_isready -h 127.0.0.1 -p "$port"
    "$examples/postgres" "postgresql://fibra:secret@127.0.0.1:$port/postgres"
}

if have redis-server && have redis-cli redis-tools; then with_redis; fi
if have initdb postgresql && have pg_isready postgresql-client; then with_postgres; fi
