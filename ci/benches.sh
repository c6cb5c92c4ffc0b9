#!/usr/bin/env bash
# Do the comparisons with the rivals still build? Their figures are for a quiet machine.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo bench --no-run -p fibra-bench
