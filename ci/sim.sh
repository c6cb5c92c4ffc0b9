#!/usr/bin/env bash
# Explores schedules: the tests of sim/ in a build whose operations are points of preemption.
set -euo pipefail
cd "$(dirname "$0")/.."

export RUSTFLAGS="--cfg fibra_sim" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/sim"
cargo test -p fibra-sim --tests "$@"
