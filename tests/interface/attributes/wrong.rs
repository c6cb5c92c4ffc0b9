// Is not compiled with the tests. A caret marks a place in the line above it, and says what is wrong there.

pub mod functions {
    #[fibra::test]
    pub async fn is_async() {}
//      ^ `#[fibra::test]` is for a plain function: without `async`, calls that wait block its task, not the thread
    #[fibra::main]
    unsafe fn is_unsafe() {}
//  ^ `#[fibra::main]` is for a plain function: not `unsafe`
    #[fibra::test]
    extern "C" fn is_of_c() {}
//  ^ `#[fibra::test]` is for a plain function: not `extern`
    #[fibra::test]
    fn has_parameters(_number: u32) {}
//                   ^ `#[fibra::test]` is for a function without parameters
    #[fibra::main]
    fn is_generic<T>() {}
//               ^ `#[fibra::main]` is for a function without generic parameters
    #[fibra::test]
    pub struct Structure;
//  ^ `#[fibra::test]` is for functions with a body
    trait Trait {
        #[fibra::test]
        fn has_no_body();
//      ^ `#[fibra::test]` is for functions with a body
    }
}

pub mod arguments {
    #[fibra::test(workers = 2, seed = 1000)]
//                             ^ unknown argument `seed`, known: `workers`, `timeout`, `start_paused`, `seeds`, `schedule`
    fn unknown() {}
    #[fibra::main(timeout = "1s")]
//                ^ unknown argument `timeout`, known: `workers`, `start_paused`
    fn unknown_in_main() {}
    #[fibra::test(workers = 2, seeds = 1000)]
//                             ^ `seeds` and `schedule` make a simulation, whose runtime takes no arguments
    fn both() {}
    #[fibra::test(schedule = 3)]
//                           ^ `schedule` takes a schedule, such as "random" or "pct(3)"
    fn no_depth() {}
    #[fibra::test("30s")]
//                ^ unknown argument `"30s"`, known: `workers`, `timeout`, `start_paused`, `seeds`, `schedule`
    fn unnamed() {}
    #[fibra::test(workers = 2, workers = 2)]
//                             ^ `workers` is given twice
    fn twice() {}
    #[fibra::test(workers = "2")]
//                          ^ `workers` takes a number from 1 on, such as `2`
    fn text() {}
    #[fibra::main(workers = 0)]
//                          ^ `workers` takes a number from 1 on, such as `2`
    fn zero() {}
    #[fibra::test(timeout = 30)]
//                          ^ `timeout` takes a time above zero with its unit, such as "500ms", "30s", "2m" or "1h"
    fn no_unit() {}
    #[fibra::test(timeout = "0s")]
//                          ^ `timeout` takes a time above zero with its unit, such as "500ms", "30s", "2m" or "1h"
    fn no_time() {}
    #[fibra::test(start_paused = 1)]
//                               ^ `start_paused` takes `true` or `false`
    fn number() {}
    #[fibra::test(workers)]
//                ^ `workers` takes a value: `workers = …`
    fn no_value() {}
    #[fibra::test(timeout =)]
//                ^ `timeout` takes a time above zero with its unit, such as "500ms", "30s", "2m" or "1h"
    fn empty() {}
    #[fibra::test(workers = 2 timeout = "1s")]
//                            ^ expected a comma
    fn no_comma() {}
}
