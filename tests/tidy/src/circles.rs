//! The rule on circles: no large group of a crate's files in which each reaches every other one by
//! its imports.

use crate::masked::{Masked, words};
use crate::tree::TextFile;
use std::collections::{BTreeMap, BTreeSet};

/// Files of a circle.
pub const CIRCLE_MAX: usize = 4;

/// The files that each file imports from, by path.
type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns the circles that are too large in any crate of the host, each as its files.
///
/// A file imports from another if a `use` that begins with `crate`, `super` or `self` leads into
/// it. Tests do not count.
#[must_use]
pub fn large(files: &[TextFile]) -> Vec<Vec<&str>> {
    let mut crates: BTreeMap<&str, Vec<&TextFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_only_tests()) {
        if let Some((folder, _)) = divided(&file.path) {
            crates.entry(folder).or_default().push(file);
        }
    }
    crates
        .values()
        .flat_map(|files| circles(&graph(files)))
        .filter(|circle| circle.len() > CIRCLE_MAX)
        .collect()
}

/// Returns the sizes of circles, each by its first file.
#[must_use]
pub fn sizes(circles: &[Vec<&str>]) -> BTreeMap<String, usize> {
    circles
        .iter()
        .filter_map(|circle| Some(((*circle.first()?).to_owned(), circle.len())))
        .collect()
}

/// Returns the source folder of a file's crate, and the file's path from there.
fn divided(path: &str) -> Option<(&str, &str)> {
    let name = path.strip_prefix("host/")?.split('/').next()?;
    let folder = path.get(.."host/".len() + name.len() + "/src".len())?;
    let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
    folder.ends_with("/src").then_some((folder, rest))
}

/// Returns the path of a file's module.
fn module(path: &str) -> Vec<&str> {
    let rest = divided(path).map_or(path, |(_, rest)| rest);
    match rest.strip_suffix(".rs").unwrap_or(rest) {
        "lib" | "main" => Vec::new(),
        rest => rest.split('/').collect(),
    }
}

fn graph<'a>(files: &[&'a TextFile]) -> Graph<'a> {
    let paths: BTreeMap<Vec<&str>, &'a str> = files
        .iter()
        .map(|file| (module(&file.path), file.path.as_str()))
        .collect();
    files
        .iter()
        .map(|file| {
            let code = Masked::new(&file.text).without_tests();
            let module = module(&file.path);
            let targets = imports(&code)
                .iter()
                .filter_map(|import| target(&paths, &absolute(import, &module)?))
                .filter(|target| *target != file.path)
                .collect();
            (file.path.as_str(), targets)
        })
        .collect()
}

/// Returns the paths of a file's imports, one for each name.
fn imports(code: &str) -> Vec<Vec<&str>> {
    let mut imports = Vec::new();
    for at in words(code, "use") {
        let rest = code.get(at + "use".len()..).unwrap_or_default();
        if let Some((tree, _)) = rest.split_once(';') {
            leaves(tree, &[], &mut imports);
        }
    }
    imports
}

/// Adds the paths of an import's tree to a list.
fn leaves<'a>(tree: &'a str, prefix: &[&'a str], into: &mut Vec<Vec<&'a str>>) {
    let (path, group) = match tree.split_once('{') {
        Some((path, rest)) => (path, rest.rsplit_once('}').map(|(group, _)| group)),
        None => (tree.split(" as ").next().unwrap_or_default(), None),
    };
    let names = path
        .split("::")
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let names: Vec<&str> = prefix.iter().copied().chain(names).collect();
    match group {
        Some(group) => {
            for part in crate::masked::parts(group) {
                leaves(part, &names, into);
            }
        }
        None if !tree.trim().is_empty() => into.push(names),
        None => {}
    }
}

/// Returns the path of an import from its crate's root; none for one from elsewhere.
fn absolute<'a>(import: &[&'a str], module: &[&'a str]) -> Option<Vec<&'a str>> {
    let (first, rest) = import.split_first()?;
    let mut base = match *first {
        "crate" => return Some(rest.to_vec()),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    let mut rest = import;
    while let Some((name @ ("self" | "super"), others)) =
        rest.split_first().map(|(name, others)| (*name, others))
    {
        if name == "super" {
            base.pop();
        }
        rest = others;
    }
    base.extend(rest);
    Some(base)
}

/// Returns the file of the innermost module on a path.
fn target<'a>(paths: &BTreeMap<Vec<&str>, &'a str>, import: &[&str]) -> Option<&'a str> {
    (0..=import.len())
        .rev()
        .find_map(|length| paths.get(import.get(..length)?).copied())
}

/// Returns the groups of files that reach each other.
fn circles<'a>(graph: &Graph<'a>) -> Vec<Vec<&'a str>> {
    let reached: Graph<'a> = graph
        .keys()
        .map(|file| (*file, reached(graph, file)))
        .collect();
    let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (file, others) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|far| far.contains(file));
        circles.insert(others.iter().filter(back).copied().collect());
    }
    circles
        .into_iter()
        .filter(|circle| !circle.is_empty())
        .collect()
}

/// Returns the files that a file imports from, and all that these import from.
fn reached<'a>(graph: &Graph<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut to_do: Vec<&str> = vec![from];
    while let Some(file) = to_do.pop() {
        for next in graph.get(file).into_iter().flatten() {
            if reached.insert(*next) {
                to_do.push(next);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> TextFile {
        TextFile::new(&format!("host/x/src/{name}.rs"), text)
    }

    /// A ring of files, each of which imports from the next.
    fn ring(last: &str) -> Vec<TextFile> {
        vec![
            file("lib", "mod a;\nuse std::fs;"),
            file("a", "use crate::b::{self, c::C as D};\nuse self::own;"),
            file("b", "use super::a::A;"),
            file("b/c", "use super::super::d;"),
            file("d", "pub(crate) use crate::e::Thing;"),
            file("e", last),
            file("tests", "use crate::a; use crate::b; use crate::c;"),
        ]
    }

    #[test]
    fn a_large_circle_is_found_and_a_small_one_is_not() {
        let files = ring("use crate::{a::{self}, std};");
        let circles = large(&files);
        assert_eq!(
            sizes(&circles),
            BTreeMap::from([("host/x/src/a.rs".to_owned(), 5)])
        );
        let files = ring("use crate::d::Thing;");
        assert_eq!(large(&files), Vec::<Vec<&str>>::new());
        let files = ring("#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n// use crate::a;\n");
        assert_eq!(large(&files), Vec::<Vec<&str>>::new());
    }

    #[test]
    fn an_import_leads_to_the_file_of_its_innermost_module() {
        let files = ring("");
        let files: Vec<&TextFile> = files.iter().collect();
        let graph = graph(&files);
        let of = |name: &str| -> Vec<&str> {
            let name = format!("host/x/src/{name}.rs");
            graph
                .get(name.as_str())
                .into_iter()
                .flatten()
                .copied()
                .collect()
        };
        assert_eq!(of("a"), ["host/x/src/b.rs", "host/x/src/b/c.rs"]);
        assert_eq!(of("b"), ["host/x/src/a.rs"]);
        assert_eq!(of("b/c"), ["host/x/src/d.rs"]);
        assert_eq!(of("lib"), Vec::<&str>::new());
    }
}
