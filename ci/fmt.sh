#!/usr/bin/env bash
# Checks that rustfmt changes no file.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
