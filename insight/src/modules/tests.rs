#![forbid(unsafe_code)]
#![cfg(target_arch = "x86_64")]

use super::{CALL, Modules, ends_with_call};

#[test]
fn each_form_of_a_call_is_known() {
    let forms: [&[u8]; 11] = [
        &[0xe8, 0, 1, 2, 3],                   // call next+0x3020100
        &[0xff, 0xd0],                         // call rax
        &[0x41, 0xff, 0xd7],                   // call r15
        &[0xff, 0x10],                         // call [rax]
        &[0xff, 0x14, 0xd8],                   // call [rax+rbx*8]
        &[0xff, 0x15, 0, 1, 2, 3],             // call [rip+0x3020100]
        &[0xff, 0x14, 0xdd, 0, 1, 2, 3],       // call [rbx*8+0x3020100]
        &[0xff, 0x50, 0x18],                   // call [rax+24]
        &[0xff, 0x54, 0x24, 0x18],             // call [rsp+24]
        &[0xff, 0x90, 0, 1, 2, 3],             // call [rax+0x3020100]
        &[0x41, 0xff, 0x94, 0x24, 0, 1, 2, 3], // call [r12+0x3020100]
    ];
    for form in forms {
        let mut code = [0x90; CALL];
        code[CALL - form.len()..].copy_from_slice(form);
        assert!(ends_with_call(&code), "{form:x?}");
    }
}

#[test]
fn other_instructions_are_no_calls() {
    let forms: [&[u8]; 5] = [
        &[0x90],                // nop
        &[0xff, 0xe0],          // jmp rax
        &[0xe9, 0, 1, 2, 3],    // jmp next+0x3020100
        &[0xff, 0xd0, 0x90],    // call rax, then nop
        &[0xff, 0x15, 0, 1, 2], // the first bytes of a call
    ];
    for form in forms {
        let mut code = [0x90; CALL];
        code[CALL - form.len()..].copy_from_slice(form);
        assert!(!ends_with_call(&code), "{form:x?}");
    }
}

#[test]
fn the_program_and_its_functions_are_found() {
    let modules = Modules::loaded();
    let here = the_program_and_its_functions_are_found as *const () as usize;
    assert!(modules.is_code(here));
    let object = modules.at(here).expect("the program");
    assert_eq!(object.path, std::path::Path::new("/proc/self/exe"));
    assert!(object.tables.is_some(), "the program has unwind tables");
    let local = 0;
    assert!(!modules.is_code(&raw const local as usize), "a stack is no code");
    assert!(modules.at(0).is_none() && modules.at(usize::MAX).is_none());
}
