//! Fuzz target: any text is refused as a configuration with the place of the fault, or parses and
//! reads back as itself.

use super::{Loaded, check, load};
use std::path::Path;

const CHUNKS: [&str; 64] = [
    "agents",
    "components",
    "files",
    "path",
    "directories",
    "network",
    "environment",
    "keyValue",
    "secrets",
    "models",
    "limits",
    "server",
    "providers",
    "agentId",
    "displayName",
    "toolDenylist",
    "capabilityAllowlist",
    "host",
    "ports",
    "methods",
    "access",
    "at",
    "deny",
    "allow",
    "scope",
    "bucket",
    "cpuMsMax",
    "listen",
    "dataDir",
    "\"read-write\"",
    "\"read-only\"",
    "\"/w\"",
    "\"../x\"",
    "\"**/.env\"",
    "\"[a]\"",
    "\"*.example.com\"",
    "\"127.0.0.1:0\"",
    "\"a\"",
    "\"\"",
    "\"\\u0000\"",
    "\"lists.write\"",
    "\"agent\"",
    "[",
    "]",
    "{",
    "}",
    "[[",
    "]]",
    "=",
    ":",
    ",",
    ".",
    "\n",
    "\n",
    "#",
    "\"",
    "'",
    "true",
    "null",
    "0",
    "-1",
    "18446744073709551616",
    "1e999",
    "ü",
];
/// Whole lines, with which most of what is tried gets beyond the first key.
const LINES: [&str; 16] = [
    "[[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\n",
    "toolDenylist = [\"x\"]\n",
    "capabilityDenylist = [\"lists.write\"]\n",
    "[components.files]\n",
    "directories = [{ path = \".\", at = \"/w\", access = \"read-only\" }]\n",
    "network = [{ host = \"example.com\" }]\n",
    "keyValue = [{ bucket = \"notes\", access = \"read-write\" }]\n",
    "environment = { A = { env = \"A\" } }\n",
    "models = [\"*\"]\n",
    "[components.files.limits]\ncpuMsMax = 10\n",
    "[server]\nlisten = \"127.0.0.1:0\"\n",
    "[secrets]\nkey = { env = \"KEY\" }\n",
    "secrets = [{ secret = \"key\", host = \"example.com\", header = \"authorization\" }]\n",
    "[limits]\n",
    "[models.m]\nprovider = \"p\"\n",
    "[providers.p]\nkind = \"openai\"\n",
];

fn toml(bytes: &[u8]) -> String {
    let chunk = |byte: &u8| match byte % 4 {
        0 => CHUNKS[usize::from(byte / 4) % CHUNKS.len()],
        _ => LINES[usize::from(byte / 4) % LINES.len()],
    };
    bytes.iter().map(chunk).collect()
}

fn json(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| CHUNKS[usize::from(*byte) % CHUNKS.len()])
        .collect()
}

fn read(folder: &Path, name: &str, text: &str) -> Option<Loaded> {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    match load(&file, []) {
        Ok(loaded) => Some(loaded),
        Err(error) => {
            let reported = error.to_string();
            assert!(reported.contains(name), "{reported} names no file");
            assert!(
                !reported
                    .chars()
                    .any(|letter| letter.is_control() && letter != '\n'),
                "{reported:?}"
            );
            None
        }
    }
}

#[test]
fn any_config_is_refused_with_its_file_or_reads_as_itself_again() {
    let folder = tempfile::tempdir().unwrap();
    bolero::check!()
        .with_type::<(bool, Vec<u8>)>()
        .for_each(|(is_toml, bytes)| {
            let (name, text) = if *is_toml {
                ("c.toml", toml(bytes))
            } else {
                ("c.json", json(bytes))
            };
            let Some(first) = read(folder.path(), name, &text) else {
                return;
            };
            check(&first);
            let again = read(
                folder.path(),
                "again.json",
                &serde_json::to_string(&first.config).unwrap(),
            );
            assert_eq!(
                again.map(|again| again.config),
                Some(first.config),
                "{text}"
            );
        });
}
