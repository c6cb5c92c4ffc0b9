#!/usr/bin/env bash
# The reports of stack overflows and what tests measure of stacks, where the optimizer has changed every frame.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --release -p fibra-runtime --test overflow --test stacks
