#!/usr/bin/env bash
# Tests the promises for builds with `panic = "abort"`, and runs the tests that need no unwinding in such a build.
set -euo pipefail
cd "$(dirname "$0")/.."

# libtest then runs each test in a process of its own. Only the switch for that is unstable.
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/abort"
run() { cargo test -Zpanic-abort-tests --config 'profile.dev.panic = "abort"' "$@"; }
run -p fibra-runtime --test processes -- abort::
run -p fibra-sync --test waits -- abort::
run -p fibra-io --test tasks -- abort::
# Skipped: tests that catch panics or observe unwinding.
run -p fibra-runtime --test runtimes --test tasks --test waits -- blocking:: join:: park:: tasks:: \
    --skip structured_join:: --skip panic --skip error --skip outside --skip cancelled --skip withdrawn --skip in_the_users_source
run -p fibra-runtime --test tasks -- turn_once wait_overlap loops_nest
