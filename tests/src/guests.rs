//! Finding built components.

use std::path::{Path, PathBuf};

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// The file of a test program.
#[must_use]
pub fn test_program(name: &str) -> PathBuf {
    let file = name.replace('-', "_");
    root().join(format!(
        "tests/programs/target/wasm32-wasip2/release/{file}.wasm"
    ))
}

/// The bytes of a built-in guest or of a test program.
///
/// # Panics
/// When it is not built, with the command that builds it.
#[must_use]
pub fn wasm(name: &str) -> Vec<u8> {
    let file = format!(
        "target/wasm32-wasip2/release/{}.wasm",
        name.replace('-', "_")
    );
    let found = ["guests", "tests/programs", "examples"]
        .iter()
        .find_map(|workspace| std::fs::read(root().join(workspace).join(&file)).ok());
    found.unwrap_or_else(|| panic!("the guest `{name}` is not built; run: ./x guests"))
}
