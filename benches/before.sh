#!/usr/bin/env bash
# Builds release programs of an older commit, prints the folder that holds them and, on a second line, that of the sources.
# Usage: benches/before.sh COMMIT [arguments of `cargo build --release`]
set -euo pipefail
cd "$(dirname "$0")/.."

commit=$(git rev-parse --verify "$1^{commit}") || { echo "there is no commit $1 in this repository" >&2; exit 2; }
target=$(realpath -m "${CARGO_TARGET_DIR:-target}/pair")
# The sources stay for the next call. Those of another commit replace them as new files: cargo compares times, and takes what it
# built of one commit for what it is to build of another. The rivals are built once for all.
sources=$target/sources
if [[ $(cat "$target/commit" 2>/dev/null) != "$commit" ]]; then
    rm -rf "$sources" "$target/commit" && mkdir -p "$sources"
    git archive "$commit" | tar xm -C "$sources"
    echo "$commit" >"$target/commit"
fi
(cd "$sources" && CARGO_TARGET_DIR=$target cargo build --release "${@:2}") >&2 ||
    { echo "commit $1 does not build with: ${*:2}" >&2; exit 1; }
printf '%s\n' "$target/release" "$sources"
