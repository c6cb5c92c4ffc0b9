#!/usr/bin/env bash
# What a request of plain text costs the example http_server, may_minihttp and hyper under `wrk -c 64`: processor time of the whole
# server, with one worker on one processor, while wrk has another. They are asked in turn; what is printed are medians.
# Usage: benches/wrk.sh [rounds, 9 unless given] [seconds of each, 2 unless given]; CORES='2 3' names other processors.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
. ci/have
have wrk || exit 1

rounds=${1:-9} seconds=${2:-2}
read -r servers client <<<"${CORES:-0 1}"
programs=${CARGO_TARGET_DIR:-target}/release
cargo build --release --example http_server
cargo build --release -p fibra-bench --features rivals --bin http_rivals

names=(fibra may_minihttp hyper)
declare -A process=() url=()
costs=$(mktemp)
cleanup() {
    kill "${process[@]}" 2>/dev/null || true
    rm -f "$costs"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Starts a server on a port that the system chooses.
start() {
    local said line
    exec {said}< <(exec taskset -c "$servers" "${@:2}" 127.0.0.1:0)
    process[$1]=$!
    read -r -u "$said" -t 10 line || { echo "$1 does not start"; exit 1; }
    url[$1]=http://${line#listening on }/plaintext
}

# The processor time that a process has used, in nanoseconds.
used() {
    local sum=0 time
    while read -r time _; do ((sum += time)) || true; done < <(cat "/proc/$1/task"/*/schedstat)
    echo "$sum"
}

# Loads a server for so many seconds, and says how many requests it has answered.
load() {
    local report
    report=$(taskset -c "$client" wrk -t1 -c64 -d"$2s" "${url[$1]}")
    ! grep -E 'Socket errors|Non-2xx' <<<"$report" >&2 || { echo "$1 fails" >&2; exit 1; }
    sed -n 's/ *\([0-9]*\) requests in.*/\1/p' <<<"$report"
}

FIBRA_WORKERS=1 start fibra "$programs/examples/http_server"
start may_minihttp "$programs/http_rivals" may_minihttp
start hyper "$programs/http_rivals" hyper
for name in "${names[@]}"; do load "$name" 1 >/dev/null; done
for round in $(seq "$rounds"); do
    for turn in 0 1 2; do
        name=${names[(round + turn) % 3]}
        before=$(used "${process[$name]}")
        requests=$(load "$name" "$seconds")
        echo "$round $name $(($(used "${process[$name]}") - before)) $requests"
    done
done >"$costs"

median() { sort -n | awk '{ all[NR] = $1 } END { printf "%.3f", (all[int((NR + 1) / 2)] + all[int(NR / 2) + 1]) / 2 }'; }
printf '%-14s %14s %14s\n' server 'us a request' "fibra's part"
for name in "${names[@]}"; do
    cost=$(awk -v name="$name" '$2 == name { print $3 / $4 / 1000 }' "$costs" | median)
    part=$(awk -v name="$name" '
        $2 == "fibra" { ours[$1] = $3 / $4 }
        $2 == name { theirs[$1] = $3 / $4 }
        END { for (round in ours) print ours[round] / theirs[round] }' "$costs" | median)
    printf '%-14s %14s %14s\n' "$name" "$cost" "$part"
done
