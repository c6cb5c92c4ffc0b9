#!/usr/bin/env bash
# Checks that library code reads the time through `clock::now` and `clock::machine` only: a simulation replaces the first.
set -euo pipefail
cd "$(dirname "$0")/.."

readings='Instant::now|SystemTime::now|\.elapsed\(\)|clock_gettime'
if grep -rnE "$readings" --include='*.rs' --exclude='tests.rs' --exclude-dir=tests src runtime/src sync/src io/src insight/src sim/src |
    grep -vE '^[^:]*:[0-9]+: *//|^runtime/src/base/(clock|sys)\.rs:|^sim/src/interpose\.rs:'; then
    echo "read the time through runtime/src/base/clock.rs" >&2
    exit 1
fi
