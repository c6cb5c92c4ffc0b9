#!/usr/bin/env bash
# Tests the promises for builds with `panic = "abort"`, and runs the tests that need no unwinding in such a build.
set -euo pipefail
cd "$(dirname "$0")/.."

# libtest then runs each test in a process of its own. Only the switch for that is unstable.
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/abort"
run() { cargo test -Zpanic-abort-tests --config 'profile.dev.panic = "abort"' "$@"; }
run -p fibra-runtime -p fibra-sync -p fibra-io --test abort
# Skipped: tests that catch panics or observe unwinding.
run -p fibra-runtime --test blocking --test join --test park --test tasks -- \
    --skip panic --skip error --skip outside --skip cancelled --skip withdrawn
run -p fibra-runtime --test parallel_for -- turn_once overlap nest
