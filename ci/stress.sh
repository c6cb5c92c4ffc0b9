#!/bin/bash
# Runs the tests of every crate many times, in debug and release, beside busy loops, on one processor and on all. Before that it
# runs the examples and raft simulated, with many seeds, and takes dumps beside a storm of switches, ten minutes on 1, 2 and 4
# workers each.
# Usage: ci/stress.sh [count, 100 unless given] [filter on the tests' names]; a quick look: ci/stress.sh 1 park
cd "$(dirname "$0")/.." || exit 1
count=${1:-100} filter=${2:-} limit=600 busy=() failures=0 log=$(mktemp) list=$(mktemp)
cleanup() { ((${#busy[@]})) && kill "${busy[@]}" 2>/dev/null; rm -f "$log" "$list"; }
trap cleanup EXIT
trap 'exit 130' INT TERM

# Prints the test binaries of one profile, one path a line, and builds the examples that they start.
binaries() {
    cargo test --no-run "$@" >"$log" 2>&1 || { cat "$log" >&2; return 1; }
    sed -n 's/.*Executable .*(\(.*\))$/\1/p' "$log"
}

# Prints the binaries of its input with a test that the filter selects. Fails if a binary does not list its tests.
chosen() {
    while read -r test; do
        names=$("$test" ${filter:+"$filter"} --list </dev/null) || { echo "$test lists no tests" >&2; return 1; }
        ! grep -q ': test$' <<<"$names" || echo "$test"
    done
}

attempt() {
    local how=$1
    shift
    timeout "$limit" "$@" >"$log" 2>&1 && return
    failures=$((failures + 1))
    echo "FAILED ($how): $*"
    grep -E '^test .*FAILED|panicked at| hangs$|^fibra:' "$log" | head -20
    tail -5 "$log"
}

# All test binaries of one profile, also those that need features.
all() {
    binaries -p fibra --features compat-examples,store-examples,tls-examples,websocket-examples "$@" &&
        binaries -p fibra-runtime -p fibra-sync "$@" &&
        binaries -p fibra-io --features compat-tests "$@" &&
        binaries -p fibra-sim --test attribute --test descriptors --test interpose --test network --test runs --test scripted --test tls --test websocket "$@" &&
        binaries -p fibra-insight "$@" &&
        binaries -p fibra-bench "$@"
}

# Starts one busy loop for each processor. They end by themselves if the trap is missed.
be_busy() {
    be_idle
    for _ in $(seq "$(nproc)"); do
        timeout 2h bash -c 'while :; do :; done' &
        busy+=($!)
    done
}

be_idle() {
    ((${#busy[@]})) || return 0
    kill "${busy[@]}" 2>/dev/null
    wait "${busy[@]}" 2>/dev/null
    busy=()
}

all >"$list" && all --release >>"$list" || { echo "the tests do not build"; exit 1; }
chosen <"$list" >"$log" || exit 1
mapfile -t tests <"$log"
binaries -p fibra-sim --test examples --test raft --release >"$list" || { echo "the simulated tests do not build"; exit 1; }
chosen <"$list" >"$log" || exit 1
mapfile -t simulated <"$log"
binaries -p fibra-insight --test storm --release >"$list" || { echo "the storm of dumps does not build"; exit 1; }
chosen <"$list" >"$log" || exit 1
mapfile -t storms <"$log"
((${#tests[@]} + ${#simulated[@]} + ${#storms[@]})) || { echo "no tests were built, or none has such a name"; exit 1; }
# The seeds are the repetitions, and what else the machine does is no matter.
for test in "${simulated[@]}"; do
    limit=7200 attempt "simulated" env FIBRA_SIM_RUNS=10000 "$test" ${filter:+"$filter"}
done
for test in "${storms[@]}"; do
    limit=7200 attempt "storm" env FIBRA_STORM_SECONDS=600 "$test" ${filter:+"$filter"} --test-threads=1
done
for round in $(seq "$count"); do
    for test in "${tests[@]}"; do
        be_busy
        attempt "round $round" "$test" ${filter:+"$filter"} --test-threads=$((1 + round % 4))
        attempt "round $round, one processor" taskset -c 0 "$test" ${filter:+"$filter"} --test-threads=$((1 + round % 2))
    done
    be_idle
    echo "round $round of $count: $failures failures so far"
done
exit $((failures > 0))
