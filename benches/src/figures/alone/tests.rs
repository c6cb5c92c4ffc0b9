//! Tests of `alone`.

use super::*;

#[test]
fn calls_are_summed_without_the_total() {
    let summary = "strace: Process 7 attached with 2 threads\n\
        % time     seconds  usecs/call     calls    errors syscall\n\
        ------ ----------- ----------- --------- --------- ----------------\n \
         50.00    0.000600           2       300           recvfrom\n \
         40.00    0.000600           2       290           sendto\n \
         10.00    0.000400           2       200        50 epoll_wait\n\
        ------ ----------- ----------- --------- --------- ----------------\n\
        100.00    0.001600           2       790        50 total\n";
    assert_eq!(Calls::of(summary), Calls { all: 790, sends: 290 });
    assert_eq!(Calls::of("strace: attach: Operation not permitted\n"), Calls { all: 0, sends: 0 });
}
