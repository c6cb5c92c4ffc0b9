#!/bin/bash
# Runs the tests of every crate many times, in debug and release, beside busy loops, on one processor and on all. The slow
# ones have one round in ten, the first among them.
# Usage: ci/stress.sh [count, 100 unless given] [filter on the tests' names]; a quick look: ci/stress.sh 1 park
cd "$(dirname "$0")/.." || exit 1
count=${1:-100} filter=${2:-} limit=600 busy=() failures=0 log=$(mktemp)
cleanup() { ((${#busy[@]})) && kill "${busy[@]}" 2>/dev/null; rm -f "$log"; }
trap cleanup EXIT
trap 'exit 130' INT TERM

# The test binaries of one profile, one path a line, and the examples that some of them start.
binaries() {
    cargo test --no-run "$@" 2>&1 | sed -n 's/.*Executable .*(\(.*\))$/\1/p'
}

# Those binaries among its input that have a test for the filter to let through.
chosen() {
    while read -r test; do
        "$test" ${filter:+"$filter"} --list </dev/null 2>/dev/null | grep -q ': test$' && echo "$test"
    done
}

is_slow() { [[ ${1##*/} =~ ^(echo_faults|balance|examples|malformed|resp_server|cancel_races|cancel_races_channels|faults|crowds|leaks|tls|tls_faults|tls_lines|websocket|websocket_faults|websocket_lines)- ]]; }

attempt() {
    local how=$1
    shift
    timeout "$limit" "$@" >"$log" 2>&1 && return
    failures=$((failures + 1))
    echo "FAILED ($how): $*"
    grep -E '^test .*FAILED|panicked at| hangs$|^fibra:' "$log" | head -20
    tail -5 "$log"
}

# The tests that need the features for async crates.
compat() { binaries -p fibra-io --features compat-tests --test 'compat_*' "$@"; }

# Those that need TLS and websockets.
tls() { binaries -p fibra --features tls-examples,websocket-examples --test https_get --test 'tls*' --test 'websocket*' "$@"; }

mapfile -t tests < <({ binaries; binaries --release; compat; compat --release; tls; tls --release; } | chosen)
((${#tests[@]})) || { echo "no tests were built, or none has such a name"; exit 1; }
# One loop for each processor; they end by themselves should the trap be missed.
for _ in $(seq "$(nproc)"); do
    timeout 4h bash -c 'while :; do :; done' &
    busy+=($!)
done
for round in $(seq "$count"); do
    for test in "${tests[@]}"; do
        is_slow "$test" && ((round % 10 != 1)) && continue
        attempt "round $round" "$test" ${filter:+"$filter"} --test-threads=$((1 + round % 4))
        attempt "round $round, one processor" taskset -c 0 "$test" ${filter:+"$filter"} --test-threads=$((1 + round % 2))
    done
    echo "round $round of $count: $failures failures so far"
done
exit $((failures > 0))
