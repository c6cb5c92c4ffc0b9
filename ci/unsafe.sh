#!/usr/bin/env bash
# Checks that each library file without `unsafe` forbids it. A module whose children hold `unsafe` cannot forbid it.
set -euo pipefail
cd "$(dirname "$0")/.."

# Whether any of these files, or of the files in these folders, holds `unsafe` or assembler outside comments.
holds_unsafe() {
    [[ -n $(grep -rhE '\bunsafe\b|global_asm!' --include='*.rs' "$@" | grep -vE '^ *//') ]]
}

failed=0
for file in $(grep -rL '^#!\[forbid(unsafe_code)\]' --include='*.rs' src runtime/src sync/src io/src macros/src insight/src tools/src sim/src); do
    case $file in
    */mod.rs | */lib.rs) children=${file%/*} ;;
    *) children=${file%.rs} ;;
    esac
    if ! holds_unsafe "$file" && ! { [[ -d $children ]] && holds_unsafe "$children"; }; then
        echo "$file: holds no unsafe code, and does not say #![forbid(unsafe_code)]" >&2
        failed=1
    fi
done
exit "$failed"
