//! Lists the files that the program carries for projects of plugins, each with its bytes.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::{env, fs};

/// The carried files and folders, by their paths from the repository's root.
const EMBEDDED: [&str; 10] = [
    "host/agent-host/src/new/templates",
    "host/agent-host/src/new/wasi",
    "rust-toolchain.toml",
    "scripts/guest-toolchain",
    "sdk/Cargo.lock",
    "sdk/Cargo.toml",
    "sdk/README.md",
    "sdk/shapes",
    "sdk/src",
    "wit",
];
/// Names of files and folders in them that no project gets.
const LEFT_OUT: [&str; 2] = ["frozen", "tests.rs"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    let mut list = String::new();
    for path in EMBEDDED {
        let place = root.join(path);
        writeln!(io::stdout(), "cargo::rerun-if-changed={}", place.display())?;
        add(&root, path, &mut list)?;
    }
    let out = env::var_os("OUT_DIR").ok_or("cargo names no folder")?;
    fs::write(Path::new(&out).join("embedded.rs"), format!("&[{list}]"))?;
    Ok(())
}

/// Adds a file, or all files of a folder.
fn add(root: &Path, path: &str, list: &mut String) -> Result<(), Box<dyn Error>> {
    let place = root.join(path);
    if place.is_file() {
        *list += &format!("EmbeddedFile {{ path: {path:?}, bytes: include_bytes!({place:?}) }},\n");
        return Ok(());
    }
    let names = fs::read_dir(place)?.map(|entry| Ok(entry?.file_name()));
    let mut names: Vec<_> = names.collect::<Result<_, io::Error>>()?;
    names.sort();
    for name in names.iter().filter_map(|name| name.to_str()) {
        if !LEFT_OUT.contains(&name) {
            add(root, &format!("{path}/{name}"), list)?;
        }
    }
    Ok(())
}
