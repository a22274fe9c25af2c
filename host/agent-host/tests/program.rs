//! The program as it is installed. That this test is here also has `cargo test` build the program anew for the tests of whole processes.

use std::process::Command;

#[test]
fn the_program_tells_its_version() {
    let told = Command::new(env!("CARGO_BIN_EXE_agent-host")).arg("--version").output().expect("it can be run");
    assert_eq!(String::from_utf8_lossy(&told.stdout), concat!("agent-host ", env!("CARGO_PKG_VERSION"), "\n"));
}
