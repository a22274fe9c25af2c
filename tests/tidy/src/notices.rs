//! Notices of what a release ships: the licences of all crates in the program and its components,
//! with their texts from the crates' own sources.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// Licences, by SPDX id, that a shipped crate may have. Each permits to ship it with its notice.
const ACCEPTED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "LLVM-exception",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
/// Crates that come without the text of their licence, and the crate of the same repository that
/// has it. A name with `*` is the beginning of several.
const TEXT_OF_SIBLING: [(&str, &str); 5] = [
    ("cranelift-*", "cranelift-codegen"),
    ("jsonschema-*", "jsonschema"),
    ("pulley-*", "wasmtime"),
    ("wasmtime-*", "wasmtime"),
    ("wit-bindgen-*", "wit-bindgen"),
];
/// Crates that come without the text of the MIT licence, which they are or may be used under, and
/// whose repository has no crate with it. A name with `*` is the beginning of several.
const MIT_WITHOUT_TEXT: [&str; 7] = [
    "boa_*",
    "hifijson",
    "jaq-*",
    "small_btree",
    "tag_ptr",
    "uuid-simd",
    "vsimd",
];
/// The MIT licence, below its copyright line.
const MIT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the \"Software\"), to deal in the Software without restriction,
including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or
substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT
OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";
/// Beginnings of the names of files with licences and notices, in capitals.
const FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// A crate that is shipped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shipped {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, an SPDX expression; empty when it names none.
    pub license: String,
    /// Its repository; empty when it names none.
    pub repository: String,
    /// The texts of its licence and notices.
    pub texts: Vec<String>,
}

/// Returns the crates that become part of some packages of a workspace, as `cargo metadata` tells
/// them. All members of the workspace are meant if none are named. Crates that are only built with
/// or tested with are not among them, nor are the workspace's own.
///
/// # Errors
/// A crate's folder cannot be read.
pub fn shipped(metadata: &Value, packages: &[&str]) -> io::Result<BTreeSet<Shipped>> {
    let all = |pointer: &str| metadata.pointer(pointer).and_then(Value::as_array);
    let by_id: BTreeMap<&str, &Value> = all("/packages")
        .into_iter()
        .flatten()
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = all("/resolve/nodes")
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let is_root = |id: &str| {
        let name = by_id.get(id).and_then(|package| package["name"].as_str());
        packages.is_empty() || name.is_some_and(|name| packages.contains(&name))
    };
    let mut open: Vec<&str> = all("/workspace_members")
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|id| is_root(id))
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(nodes.get(id).into_iter().flat_map(|node| normal(node)));
        }
    }
    seen.iter()
        .filter_map(|id| by_id.get(id))
        .filter(|package| package["source"].is_string())
        .map(|package| read(package))
        .collect()
}

/// Returns the dependencies of a node that become part of it.
fn normal(node: &Value) -> impl Iterator<Item = &str> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_normal = move |dependency: &&Value| {
        list(&dependency["dep_kinds"])
            .iter()
            .any(|kind| kind["kind"].is_null())
    };
    let dependencies = node["deps"].as_array().map(Vec::as_slice);
    dependencies
        .unwrap_or_default()
        .iter()
        .filter(is_normal)
        .filter_map(|dependency| dependency["pkg"].as_str())
}

fn read(package: &Value) -> io::Result<Shipped> {
    let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let manifest = text("manifest_path");
    let folder = Path::new(&manifest).parent().unwrap_or(Path::new(""));
    Ok(Shipped {
        name: text("name"),
        version: text("version"),
        license: text("license"),
        repository: text("repository"),
        texts: texts(folder)?,
    })
}

/// Reads the files with licences and notices of a folder, and of a folder of licences in it.
fn texts(folder: &Path) -> io::Result<Vec<String>> {
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_uppercase();
        let is_one = FILES.iter().any(|start| name.starts_with(start)) || name == "UNLICENSE";
        if is_one && path.is_dir() {
            for entry in fs::read_dir(&path)? {
                texts.push(fs::read_to_string(entry?.path())?);
            }
        } else if is_one && !name.ends_with(".RS") {
            texts.push(fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}

/// Gives crates that come without a text that of their repository. Returns a sentence for each
/// crate whose notice cannot be given, or whose licence is none of those that may be shipped.
pub fn complete(all: &mut BTreeSet<Shipped>) -> Vec<String> {
    let texts: BTreeMap<String, Vec<String>> = all
        .iter()
        .filter(|shipped| !shipped.texts.is_empty())
        .map(|shipped| (shipped.name.clone(), shipped.texts.clone()))
        .collect();
    let mut faults = Vec::new();
    *all = std::mem::take(all)
        .into_iter()
        .map(|mut shipped| {
            let Shipped { name, version, .. } = &shipped;
            if let Some(id) = not_accepted(&shipped.license) {
                faults.push(format!(
                    "{name} {version}: its licence `{id}` is none of those that are shipped; see \
                     ACCEPTED in tests/tidy/src/notices.rs"
                ));
            }
            if shipped.texts.is_empty() {
                match text_for(&shipped, &texts) {
                    Some(found) => shipped.texts = found,
                    None => faults.push(format!(
                        "{name} {version}: it comes without the text of its licence `{}`; say \
                         where that is in tests/tidy/src/notices.rs",
                        shipped.license
                    )),
                }
            }
            shipped
        })
        .collect();
    faults
}

/// Returns the first word of a licence's expression that may not be shipped; none where one of its
/// alternatives may be.
fn not_accepted(license: &str) -> Option<String> {
    let is_simple = !license.contains('(');
    let mut alternatives = license.split(" OR ");
    if is_simple && alternatives.any(|id| ACCEPTED.contains(&id)) {
        return None;
    }
    let words = license
        .split([' ', '(', ')', '/'])
        .filter(|word| !word.is_empty());
    let mut words = words
        .filter(|word| !["OR", "AND", "WITH"].contains(word))
        .peekable();
    if words.peek().is_none() {
        return Some("none".to_owned());
    }
    words
        .find(|word| !ACCEPTED.contains(word))
        .map(str::to_owned)
}

fn text_for(shipped: &Shipped, texts: &BTreeMap<String, Vec<String>>) -> Option<Vec<String>> {
    let is_meant = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => shipped.name.starts_with(start),
        None => shipped.name == pattern,
    };
    let may_be_mit = shipped.license.split(" OR ").any(|id| id == "MIT");
    if may_be_mit && MIT_WITHOUT_TEXT.iter().any(|pattern| is_meant(pattern)) {
        let Shipped {
            name, repository, ..
        } = shipped;
        return Some(vec![format!(
            "MIT License\n\nCopyright (c) the authors of {name} ({repository})\n\n{MIT}"
        )]);
    }
    let (_, sibling) = TEXT_OF_SIBLING
        .iter()
        .find(|(pattern, _)| is_meant(pattern))?;
    texts.get(*sibling).cloned()
}

/// The notices as one text: the crates with their licences, then each text with the crates that it
/// is of.
#[must_use]
pub fn document(all: &BTreeSet<Shipped>) -> String {
    let mut document = "Notices of the crates that agent-host and its components are made of. \
                        agent-host itself is under the Apache License 2.0, see LICENSE.\n\n"
        .to_owned();
    let mut by_text: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for shipped in all {
        let Shipped {
            name,
            version,
            license,
            repository,
            texts,
        } = shipped;
        // Writing to a string cannot fail.
        let _ = writeln!(document, "{name} {version}: {license}  {repository}");
        for text in texts {
            let text = text.replace("\r\n", "\n").trim().to_owned();
            by_text
                .entry(text)
                .or_default()
                .insert(format!("{name} {version}"));
        }
    }
    for (text, crates) in by_text {
        let crates: Vec<String> = crates.into_iter().collect();
        let line = "-".repeat(80);
        let _ = write!(
            document,
            "\n{line}\n{}\n{line}\n\n{text}\n",
            crates.join(", ")
        );
    }
    document
}

#[cfg(test)]
mod tests {
    use super::{Shipped, complete, document, not_accepted, shipped};
    use serde_json::json;
    use std::collections::BTreeSet;

    fn a_crate(name: &str, license: &str, texts: &[&str]) -> Shipped {
        Shipped {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            repository: String::new(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn a_crate_without_the_text_of_its_licence_is_a_fault() {
        let mut all = BTreeSet::from([
            a_crate("wasmtime", "Apache-2.0 WITH LLVM-exception", &["the text"]),
            a_crate("wasmtime-cache", "Apache-2.0 WITH LLVM-exception", &[]),
            a_crate("vsimd", "MIT", &[]),
            a_crate("bare", "MIT", &[]),
            a_crate("strict", "GPL-3.0-only", &["its text"]),
        ]);
        let faults = complete(&mut all);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].starts_with("bare 1.0.0: it comes without"));
        assert!(faults[1].starts_with("strict 1.0.0: its licence `GPL-3.0-only`"));
        let text = document(&all);
        assert!(text.contains("\nwasmtime 1.0.0, wasmtime-cache 1.0.0\n"));
        assert!(text.contains("Copyright (c) the authors of vsimd"));
    }

    #[test]
    fn a_licence_is_accepted_as_a_whole_or_named() {
        for accepted in [
            "MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "MIT/Apache-2.0",
        ] {
            assert_eq!(not_accepted(accepted), None);
        }
        assert_eq!(not_accepted("MIT OR GPL-2.0"), None);
        assert_eq!(not_accepted("MIT AND GPL-2.0"), Some("GPL-2.0".to_owned()));
        assert_eq!(not_accepted(""), Some("none".to_owned()));
    }

    #[test]
    fn what_is_only_built_or_tested_with_is_not_shipped() {
        let package = |id: &str, source: bool| {
            json!({ "id": id, "name": id, "version": "1.0.0", "license": "MIT", "repository": null,
                "source": source.then_some("registry"),
                "manifest_path": concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml") })
        };
        let depends =
            |on: &str, kind: Option<&str>| json!({ "pkg": on, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("host", false), package("other", false), package("a", true),
                package("b", true), package("c", true), package("d", true)],
            "workspace_members": ["host", "other"],
            "resolve": { "nodes": [
                { "id": "host", "deps": [depends("a", None), depends("b", Some("dev"))] },
                { "id": "other", "deps": [depends("d", None)] },
                { "id": "a", "deps": [depends("c", Some("build"))] },
                { "id": "b", "deps": [] }, { "id": "c", "deps": [] }, { "id": "d", "deps": [] },
            ] },
        });
        let names = |packages: &[&str]| {
            let all = shipped(&metadata, packages).unwrap();
            all.into_iter()
                .map(|shipped| shipped.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&["host"]), ["a"]);
        assert_eq!(names(&[]), ["a", "d"]);
    }
}
