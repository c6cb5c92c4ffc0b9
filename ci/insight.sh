#!/usr/bin/env bash
# Tests the stacks of dumps in a release build.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --release -p fibra-insight --tests
