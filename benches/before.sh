#!/usr/bin/env bash
# Builds release programs of an older commit, prints the folder that holds them and, on a second line, that of the sources.
# Usage: benches/before.sh COMMIT [arguments of `cargo build --release`]
set -euo pipefail
cd "$(dirname "$0")/.."

commit=$(git rev-parse --verify "$1^{commit}") || { echo "there is no commit $1 in this repository" >&2; exit 2; }
target=$(realpath -m "${CARGO_TARGET_DIR:-target}/pair")
# Each commit has a folder for its sources that stays, so that cargo builds them once. All share a target folder for the rivals.
sources=$target/$commit
if [[ ! -d $sources ]]; then
    rm -rf "$sources.new" && mkdir -p "$sources.new"
    git archive "$commit" | tar x -C "$sources.new"
    mv "$sources.new" "$sources"
fi
(cd "$sources" && CARGO_TARGET_DIR=$target cargo build --release "${@:2}") >&2 ||
    { echo "commit $1 does not build with: ${*:2}" >&2; exit 1; }
printf '%s\n' "$target/release" "$sources"
