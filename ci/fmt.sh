#!/usr/bin/env bash
# Is every file as rustfmt leaves it?
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
