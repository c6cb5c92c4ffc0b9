#!/usr/bin/env bash
# The tests of the runtime and of the primitives under AddressSanitizer, which is told of every switch of stacks by the feature `sanitizer`.
set -euo pipefail
cd "$(dirname "$0")/.."

# The sanitizer comes with the stable toolchain; only its switch is an unstable one.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
# Faults are the runtime's, whose report of overflows is tested too, and so are the alternate stacks. Locals stay on the
# tasks' own stacks, where the guards are. Leaks are not looked for: what only a sleeping stack points to is no leak, and
# the sanitizer does not read those stacks.
export ASAN_OPTIONS="handle_segv=0:handle_sigbus=0:use_sigaltstack=0:detect_stack_use_after_return=0:detect_leaks=0"
# Its errors are those of one round or of none; who comes first in many is hunted by the same tests without it.
export FIBRA_TESTS_SLOWER_BY=10
# Skipped: tests that measure how deep a stack is. The sanitizer's frames are larger, so they overflow for good reason. And one
# that has stacks of terabytes, whose every page the sanitizer would mark.
run() { cargo test --features sanitizer --target "$(rustc --print host-tuple)" --lib --tests "$@"; }
# They are built one after the other and run side by side: most tests wait, or are alone.
log=$(mktemp) failed=0
trap 'rm -f "$log"' EXIT
run -p fibra-sync >"$log" 2>&1 &
sync=$!
run -p fibra-runtime -- \
    --skip a_join_says_so_where_the_system_itself_has_no_stack \
    --skip a_task_may_have_a_stack_of_its_own_size \
    --skip both_kinds_of_guard_give_whole_stacks \
    --skip two_hundred_thousand_tasks_share_eight_stacks_at_full_depth || failed=1
wait "$sync" || failed=1
cat "$log"
exit $failed
