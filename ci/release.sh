#!/usr/bin/env bash
# Tests the reports of stack overflows and the measures of stacks in release, where the frames differ.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --release -p fibra-runtime --test overflow --test stacks
