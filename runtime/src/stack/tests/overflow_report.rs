//! The report of an overflow, and that every other fault goes where it went before. Each runs in a process of its own.

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stack::overflow;
use crate::stack::overflow_line::{Knob, Overflow};

use crate::stack::tests;
use crate::stack::tests::{SIZE, case, config, poke, stacks, stderr};

fn child(test: &str, case: &str) -> std::process::Output {
    tests::child(module_path!(), test, case)
}

/// What the lookup of the children answers for.
static FAULT: AtomicUsize = AtomicUsize::new(0);

fn lookup(fault: usize, report: &dyn Fn(&Overflow<'_>)) {
    if FAULT.load(Ordering::Relaxed) == fault {
        report(&Overflow { id: 7, name: Some("parser"), place: None, stack_size: SIZE, knob: Knob::Builder });
    }
}

fn line(id: u64, name: Option<&str>, place: Option<(&str, u32)>, stack_size: usize, knob: Knob) -> String {
    let overflow = Overflow { id, name, place, stack_size, knob };
    overflow.with_line(|line| String::from_utf8(line.to_vec()).unwrap())
}

#[test]
fn names_task_size_and_knob() {
    let knob = "raise it with task::Builder::stack_size or Runtime::builder().stack_size, or run deep code in \
                task::on_big_stack\n";
    let place = Some(("src/deep.rs", 12));
    let with_name = line(7, Some("parser"), place, 256 << 10, Knob::Builder);
    assert_eq!(with_name, format!("fibra: task 'parser' (id 7) overflowed its stack of 256 KiB; {knob}"));
    let without = line(u64::MAX, None, place, 8 << 20, Knob::Builder);
    let task = "task (id 18446744073709551615, spawned at src/deep.rs:12)";
    assert_eq!(without, format!("fibra: {task} overflowed its stack of 8 MiB; {knob}"));
    assert!(line(0, None, None, 1000, Knob::Builder).contains("(id 0) overflowed its stack of 1000 bytes;"));
    let main = line(1, Some("main"), place, 8 << 20, Knob::Main);
    assert!(
        main.contains("Runtime::builder().main_stack_size") && main.ends_with("task::on_big_stack\n"),
        "{main}"
    );
    let big = line(1, None, place, 1 << 20, Knob::BigStack);
    assert!(big.ends_with("; give task::on_big_stack a larger size\n"), "{big}");
}

#[test]
fn is_one_line_whatever_the_name_and_the_path() {
    let long = "a\nb".repeat(1000);
    let named = line(1, Some(&long), None, 1 << 14, Knob::Builder);
    assert!(named.contains("a?ba?b") && named.contains("...' (id 1)"), "{named}");
    let placed = line(u64::MAX, None, Some((&long, u32::MAX)), usize::MAX - 1, Knob::Builder);
    for line in [named, placed] {
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.ends_with("on_big_stack\n"), "{line}");
    }
}

#[test]
fn says_that_a_name_is_cut_only_where_it_is() {
    let name = |name: &str| line(1, Some(name), None, SIZE, Knob::Builder);
    let last = "a".repeat(119) + "é";
    assert!(name(&last).contains(&format!("'{last}'")));
    assert!(name(&format!("{last}b")).contains(&format!("'{last}...'")));
}

fn install() {
    // SAFETY: the lookup reads an atomic; the name is static.
    unsafe { overflow::install(lookup).unwrap() };
}

fn fault_in_guard() -> usize {
    let mut pool = stacks(config()).pool();
    let stack = pool.take().unwrap();
    let address = stack.guard_range().end - 8;
    std::mem::forget(stack);
    address
}

fn set_handler(handler: usize, flags: libc::c_int) {
    // SAFETY: all-zero bytes are a valid `sigaction`; the handlers of this file have the signature that the flags promise.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
    }
}

fn say_and_exit(text: &str) -> ! {
    // SAFETY: a write of a slice, and an exit that runs nothing.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(42)
    }
}

extern "C" fn plain(signal: libc::c_int) {
    assert_eq!(signal, libc::SIGSEGV);
    say_and_exit("plain handler");
}

extern "C" fn detailed(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    assert!(signal == libc::SIGSEGV && !context.is_null());
    // SAFETY: the kernel's siginfo, handed on.
    let address = unsafe { (*info).si_addr() }.addr();
    assert_eq!(address, fault_address());
    say_and_exit("detailed handler");
}

extern "C" fn sent(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's siginfo of a signal that was sent.
    assert_eq!(unsafe { (*info).si_pid() }.cast_unsigned(), std::process::id());
    // SAFETY: all-zero bytes are a valid `sigaction` to be written; the new one is null.
    let present = unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGSEGV, std::ptr::null(), &mut present);
        present.sa_sigaction
    };
    assert_eq!(present, libc::SIG_DFL);
    say_and_exit("sent by this process");
}

fn fault_address() -> usize {
    16
}

extern "C" fn blocked(_: libc::c_int) {
    // SAFETY: all-zero bytes are a valid set to be written; the first argument may be null.
    let inside = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
        libc::sigismember(&set, libc::SIGSEGV)
    };
    say_and_exit(if inside == 1 { "blocked" } else { "open" });
}

#[test]
fn an_overflow_is_one_line_and_an_abort() {
    if case().is_some() {
        install();
        let _alternate = overflow::thread_setup().unwrap();
        let address = fault_in_guard();
        FAULT.store(address, Ordering::Relaxed);
        return poke(address);
    }
    let output = child("an_overflow_is_one_line_and_an_abort", "run");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    let text = "fibra: task 'parser' (id 7) overflowed its stack of 64 KiB; raise it with";
    assert!(stderr(&output).lines().any(|line| line.starts_with(text)), "{output:?}");
}

#[test]
fn other_faults_reach_the_previous_handler() {
    if let Some(case) = case() {
        match case.as_str() {
            "plain" => set_handler(plain as *const () as usize, 0),
            "once" => set_handler(plain as *const () as usize, libc::SA_RESETHAND),
            "detailed" => set_handler(detailed as *const () as usize, libc::SA_SIGINFO),
            "sent once" => set_handler(sent as *const () as usize, libc::SA_SIGINFO | libc::SA_RESETHAND),
            "blocked" => set_handler(blocked as *const () as usize, 0),
            "open" => set_handler(blocked as *const () as usize, libc::SA_NODEFER),
            "default" | "sent default" => set_handler(libc::SIG_DFL, 0),
            "ignored" | "sent ignored" => set_handler(libc::SIG_IGN, 0),
            _ => {}
        }
        install();
        if case.starts_with("sent") {
            // SAFETY: raise has no precondition.
            unsafe { libc::raise(libc::SIGSEGV) };
            say_and_exit("survived");
        }
        return poke(fault_address());
    }
    let run = |case| child("other_faults_reach_the_previous_handler", case);
    for (case, says) in [
        ("plain", "plain handler"),
        ("once", "plain handler"),
        ("sent once", "sent by this process"),
        ("detailed", "detailed handler"),
        ("blocked", "blocked"),
        ("open", "open"),
    ] {
        let output = run(case);
        assert!(output.status.code() == Some(42) && stderr(&output).contains(says), "{case}: {output:?}");
    }
    for case in ["std's", "default", "ignored", "sent default"] {
        let output = run(case);
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{case}: {output:?}");
        assert!(!stderr(&output).contains("fibra:"), "{case}: {output:?}");
    }
    let output = run("sent ignored");
    assert!(output.status.code() == Some(42) && stderr(&output).contains("survived"), "{output:?}");
}

extern "C" fn on_bare_thread(_: *mut libc::c_void) -> *mut libc::c_void {
    let before = alternate_stack();
    assert!(before.is_none());
    let setup = overflow::thread_setup().unwrap();
    assert!(alternate_stack().is_some());
    let again = overflow::thread_setup().unwrap();
    drop(again);
    assert!(alternate_stack().is_some());
    drop(setup);
    assert!(alternate_stack().is_none());
    // The overflow itself, on a thread that std knows nothing of.
    let _setup = overflow::thread_setup().unwrap();
    poke(FAULT.load(Ordering::Relaxed));
    std::ptr::null_mut()
}

fn alternate_stack() -> Option<usize> {
    // SAFETY: all-zero bytes are a valid `stack_t` to be written; the first argument may be null.
    let stack = unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        assert_eq!(libc::sigaltstack(std::ptr::null(), &mut stack), 0);
        stack
    };
    (stack.ss_flags & libc::SS_DISABLE == 0).then_some(stack.ss_sp.addr())
}

#[test]
fn a_thread_without_an_alternate_stack_gets_one() {
    if case().is_some() {
        install();
        FAULT.store(fault_in_guard(), Ordering::Relaxed);
        // SAFETY: the thread gets a function of the right type that ends before the process does; it is joined.
        unsafe {
            let mut bare = std::mem::zeroed();
            libc::pthread_create(&mut bare, std::ptr::null(), on_bare_thread, std::ptr::null_mut());
            libc::pthread_join(bare, std::ptr::null_mut());
        }
        return;
    }
    let output = child("a_thread_without_an_alternate_stack_gets_one", "run");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
    assert!(stderr(&output).contains("fibra: task 'parser' (id 7)"), "{output:?}");
}

#[test]
fn the_small_alternate_stack_of_a_std_thread_is_replaced_and_comes_back() {
    let before = alternate_stack();
    let setup = overflow::thread_setup().unwrap();
    let ours = alternate_stack();
    assert!(ours.is_some() && ours != before);
    let again = overflow::thread_setup().unwrap();
    assert_eq!(alternate_stack(), ours, "a large one is kept");
    drop(again);
    assert_eq!(alternate_stack(), ours);
    drop(setup);
    assert_eq!(alternate_stack(), before);
}
