#!/usr/bin/env bash
# Compares the instructions of the key paths with benches/counts.txt. More than 5 % growth is an error: shorten the path, or
# rewrite the file with `ci/counts.sh --write` and say in the commit what the growth is for.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
. ci/have

file=benches/counts.txt times=32768
counts=${CARGO_TARGET_DIR:-target}/release/counts

# Without valgrind there is nothing to compare, which is no error, and nothing to write, which is one.
have valgrind || { [[ ${1:-} != --write ]]; exit; }
# The counts include the system's library: it allocates, copies, and makes system calls.
compiler="$(rustc --version) for $(rustc --print host-tuple), $(getconf GNU_LIBC_VERSION || echo other libc), $(valgrind --version)"
cargo build --release -p fibra-bench --bin counts

# The first processor that this may run on.
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')

# Counts the instructions of a program that takes a path so many times. On one processor, since polling beside a running client
# depends on time.
instructions() {
    local log
    log=$(taskset -c "$core" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$counts" "$1" "$2" 2>&1) || { echo "$log" >&2; return 1; }
    sed -n 's/.*Collected : //p' <<<"$log"
}

# Prints a row for each path: the difference between two lengths, so that start and end cancel out.
measure() {
    local path about once twice
    "$counts" | while IFS=: read -r path about; do
        once=$(instructions "$path" $times)
        twice=$(instructions "$path" $((2 * times)))
        awk -v path="$path" -v more=$((twice - once)) -v times=$times -v about="$about" \
            'BEGIN { printf "%-8s %8.1f %s\n", path, more / times, about }'
    done
}

rows=$(measure)
if [[ ${1:-} == --write ]]; then
    {
        echo "# Instructions of the key paths as callgrind counts them: ci/counts.sh compares with this file and can write it."
        echo "# User code alone, one worker, release profile. They repeat to 0.1 %, those of echo to 1 %."
        echo "# $compiler"
        echo "$rows"
    } >$file
    cat $file
    exit
fi

same=0
grep -qxF "# $compiler" $file && same=1
awk -v same=$same '
    BEGIN { printf "%-8s %8s %8s\n", "path", "now", "filed" }
    /^#/ { next }
    NR == FNR { filed[$1] = $2; next }
    !($1 in filed) { print $1, $2, "is not in the file"; bad = 1; next }
    {
        word = $2 > 1.05 * filed[$1] ? "has grown" : $2 < 0.95 * filed[$1] ? "has shrunk" : "as filed"
        printf "%-8s %8.1f %8.1f  %s\n", $1, $2, filed[$1], word
        if (word == "has grown") bad = 1
        if (word == "has shrunk") shrunk = 1
        delete filed[$1]
    }
    END {
        for (path in filed) { print path, "is only in the file"; bad = 1 }
        if (!same) print "another compiler, libc or valgrind wrote the file: the counts are not judged"
        else if (bad) print "benches/counts.txt differs: ci/counts.sh --write rewrites it"
        else if (shrunk) print "some paths have become shorter: ci/counts.sh --write keeps them so"
        exit same && bad
    }' $file - <<<"$rows"
