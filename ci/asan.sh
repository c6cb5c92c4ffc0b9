#!/usr/bin/env bash
# Runs the tests of the runtime, of the primitives and of dumps under AddressSanitizer. The feature `sanitizer` reports every
# switch of stacks to it.
set -euo pipefail
cd "$(dirname "$0")/.."

# The sanitizer comes with the stable toolchain. Only its switch is unstable.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
# The runtime handles faults and alternate stacks, since its report of overflows is tested. Locals stay on the tasks' own
# stacks, where the guards are. Leaks are not searched: the sanitizer does not read the stacks of sleeping tasks.
export ASAN_OPTIONS="handle_segv=0:handle_sigbus=0:use_sigaltstack=0:detect_stack_use_after_return=0:detect_leaks=0"
# The sanitizer finds an error in the first round or in none. Races over many rounds are left to builds without it.
export FIBRA_TESTS_SLOWER_BY=5
# Skipped: tests that measure the depth of a stack, which the larger frames of the sanitizer overflow, and one with terabytes
# of stacks, since the sanitizer marks every page.
run() { cargo test --features sanitizer --target "$(rustc --print host-tuple)" --lib --tests "$@"; }
# Built one after the other, run side by side: most tests wait.
log=$(mktemp) failed=0
trap 'rm -f "$log"' EXIT
run -p fibra-sync >"$log" 2>&1 &
sync=$!
run -p fibra-runtime -- \
    --skip a_join_says_so_where_the_system_itself_has_no_stack \
    --skip a_task_may_have_a_stack_of_its_own_size \
    --skip both_kinds_of_guard_give_whole_stacks \
    --skip twenty_thousand_tasks_share_eight_stacks_at_full_depth || failed=1
wait "$sync" || failed=1
cat "$log"
# Skipped: tests that count the frames to the root, which the switch for the sanitizer does not mark.
cargo test --features fibra-runtime/sanitizer --target "$(rustc --print host-tuple)" -p fibra-insight \
    --test dumps --test storm -- \
    --skip a_dump_shows_the_frames_of_a_sleeper \
    --skip big_stack_is_walked_through_both_stacks \
    --skip every_frame_of_a_storm_is_a_real_return_address || failed=1
exit $failed
