#!/usr/bin/env bash
# Lints, with warnings as errors. The feature `sanitizer` is left out: it links under AddressSanitizer alone (see asan.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

cargo clippy --workspace --all-targets -- -D warnings
