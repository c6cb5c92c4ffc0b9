#!/usr/bin/env bash
# Tests the stacks of dumps as programs are built: in release, with `panic = "abort"`, and with frame pointers.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --release -p fibra-insight --tests
sleeper=a_dump_shows_the_frames_of_a_sleeper
# libtest then runs each test in a process of its own. Only the switch for that is unstable.
RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/abort" cargo test -Zpanic-abort-tests \
    --config 'profile.dev.panic = "abort"' -p fibra-insight --test dumps -- "$sleeper"
RUSTFLAGS="-Cforce-frame-pointers=yes" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/insight" \
    cargo test --release --config 'profile.release.lto = "off"' -p fibra-insight --test dumps -- "$sleeper"
