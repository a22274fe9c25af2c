//! The rule on circles: no large group of a crate's files in which each reaches every other one, by
//! imports and paths, or by calls of one type's methods that stand in several files.

use crate::masked::{Masked, behind_bracket, first_word, functions, is_of_word, words};
use crate::tree::TextFile;
use std::collections::{BTreeMap, BTreeSet};

/// Files of a circle.
pub const CIRCLE_MAX: usize = 4;

/// The files that each file imports from, by path.
type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns the circles that are too large in any crate of the host, each as its files.
///
/// A file imports from another if a `use`, or a path in its code, that begins with `crate`, `super`
/// or `self` leads into it. Tests do not count.
#[must_use]
pub fn large(files: &[TextFile]) -> Vec<Vec<&str>> {
    let crates = by_crate(files);
    let circles = crates.values().flat_map(|files| circles(&graph(files)));
    circles.filter(|circle| circle.len() > CIRCLE_MAX).collect()
}

/// Returns the sizes of the circles that are too large in the methods of any type, each by its
/// first file and the type.
///
/// A file calls another if a method of the type in it calls one on `self`, or by `Self`, that
/// stands in the other. Methods are known by their names.
#[must_use]
pub fn large_of_methods(files: &[TextFile]) -> BTreeMap<String, usize> {
    let mut large = BTreeMap::new();
    for files in by_crate(files).values() {
        let codes: Vec<(&str, String)> = files
            .iter()
            .map(|file| (file.path.as_str(), Masked::new(&file.text).without_tests()))
            .collect();
        for (name, blocks) in blocks_of_types(&codes) {
            let circles = circles(&calls(&blocks));
            let of_type = circles.iter().filter(|it| it.len() > CIRCLE_MAX);
            let named =
                of_type.filter_map(|it| Some((format!("{}: {name}", it.first()?), it.len())));
            large.extend(named);
        }
    }
    large
}

/// Methods of one type of the broker that other files can call.
pub const METHODS_MAX: usize = 25;

/// Returns the types of the broker with too many methods that other files can call, with their
/// number.
///
/// A handle of the broker is a type of its own.
#[must_use]
pub fn crowded(files: &[TextFile]) -> BTreeMap<String, usize> {
    let of_broker = files
        .iter()
        .filter(|file| file.path.starts_with("host/broker/src/") && !file.is_only_tests());
    let codes: Vec<(&str, String)> = of_broker
        .map(|file| (file.path.as_str(), Masked::new(&file.text).without_tests()))
        .collect();
    let count = |blocks: Blocks<'_>| -> usize {
        let blocks = blocks.into_values().flatten();
        blocks.map(|block| visible_methods(&block)).sum()
    };
    let types = blocks_of_types(&codes).into_iter();
    types
        .map(|(name, blocks)| (name, count(blocks)))
        .filter(|(_, methods)| *methods > METHODS_MAX)
        .collect()
}

/// Returns the number of methods in a block that are not private.
fn visible_methods(block: &str) -> usize {
    let lines = block
        .lines()
        .filter_map(|line| line.strip_prefix("    pub"));
    lines
        .filter(|line| words(line, "fn").next().is_some())
        .count()
}

/// The blocks of methods, by file.
type Blocks<'a> = BTreeMap<&'a str, Vec<String>>;

/// Returns the blocks of each type's own methods.
fn blocks_of_types<'a>(codes: &[(&'a str, String)]) -> BTreeMap<String, Blocks<'a>> {
    let mut types: BTreeMap<String, Blocks<'a>> = BTreeMap::new();
    for (path, code) in codes {
        for at in words(code, "impl") {
            let opens_a_line = at == 0 || code.get(..at).is_some_and(|it| it.ends_with('\n'));
            let rest = code.get(at + "impl".len()..).unwrap_or_default();
            let Some(brace) = rest.find('{').filter(|_| opens_a_line) else {
                continue;
            };
            let header = rest.get(..brace).unwrap_or_default();
            let name = first_word(behind_generics(header));
            if name.is_empty() || words(header, "for").next().is_some() {
                continue;
            }
            let start = at + "impl".len() + brace;
            let block = code
                .get(start..behind_bracket(code, start))
                .unwrap_or_default();
            let blocks = types.entry(name.to_owned()).or_default();
            blocks.entry(path).or_default().push(block.to_owned());
        }
    }
    types
}

/// Returns what stands behind the parameters of an `impl`.
fn behind_generics(header: &str) -> &str {
    if !header.starts_with('<') {
        return header;
    }
    let mut depth = 0_usize;
    for (at, c) in header.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !header.get(..at).unwrap_or_default().ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return header.get(at + 1..).unwrap_or_default();
        }
    }
    header
}

/// Returns the files that the methods in each file call.
fn calls<'a>(blocks: &Blocks<'a>) -> Graph<'a> {
    let mut places: BTreeMap<&str, &'a str> = BTreeMap::new();
    for (path, blocks) in blocks {
        for block in blocks {
            places.extend(functions(block).iter().map(|it| (it.name, *path)));
        }
    }
    let called = |(path, blocks): (&&'a str, &Vec<String>)| {
        let names = blocks.iter().flat_map(|block| called(block));
        let targets = names.filter_map(|name| places.get(name).copied());
        (*path, targets.filter(|target| target != path).collect())
    };
    blocks.iter().map(called).collect()
}

/// Returns the names of the methods that some code calls on `self` or by `Self`.
fn called(code: &str) -> Vec<&str> {
    let calls = [("self", "."), ("Self", "::")].into_iter();
    let names = calls.flat_map(|(word, joint)| {
        words(code, word).filter_map(move |at| {
            let rest = code.get(at + word.len()..)?.trim_start();
            let rest = rest.strip_prefix(joint)?;
            let name = first_word(rest);
            let behind = rest.get(name.len()..)?;
            (behind.starts_with('(') || behind.starts_with("::<")).then_some(name)
        })
    });
    names.collect()
}

/// Returns the files that are no tests, by the folders of their crates.
fn by_crate(files: &[TextFile]) -> BTreeMap<&str, Vec<&TextFile>> {
    let mut crates: BTreeMap<&str, Vec<&TextFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_only_tests()) {
        if let Some((folder, _)) = divided(&file.path) {
            crates.entry(folder).or_default().push(file);
        }
    }
    crates
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

/// Returns the paths of a file's imports, one for each name, and those in its code.
fn imports(code: &str) -> Vec<Vec<&str>> {
    let mut imports = Vec::new();
    let mut rest = code;
    while let Some(at) = words(rest, "use").next() {
        inline(rest.get(..at).unwrap_or_default(), &mut imports);
        let tree = rest.get(at + "use".len()..).unwrap_or_default();
        let (tree, behind) = tree.split_once(';').unwrap_or((tree, ""));
        leaves(tree, &[], &mut imports);
        rest = behind;
    }
    inline(rest, &mut imports);
    imports
}

/// Adds the paths in code between imports to a list. The place of a visibility is none.
fn inline<'a>(code: &'a str, into: &mut Vec<Vec<&'a str>>) {
    for root in ["crate", "super", "self"] {
        for at in words(code, root) {
            let before = code.get(..at).unwrap_or_default().trim_end();
            let path = code.get(at..).unwrap_or_default();
            let is_root = !before.ends_with("::") && !before.ends_with("(in");
            if is_root
                && path
                    .get(root.len()..)
                    .is_some_and(|it| it.starts_with("::"))
            {
                let end = path.find(|c: char| c != ':' && !is_of_word(c));
                let path = path.get(..end.unwrap_or(path.len())).unwrap_or_default();
                into.push(path.split("::").filter(|it| !it.is_empty()).collect());
            }
        }
    }
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
    fn a_handle_with_many_methods_is_found_and_private_ones_do_not_count() {
        let handle = |name: &str, visible: usize| {
            let visible = "    pub(crate) async fn a(&self) {}\n".repeat(visible);
            let text = format!("impl Some<'_> {{\n{visible}    fn b() {{}}\n}}\n");
            TextFile::new(&format!("host/broker/src/{name}.rs"), &text)
        };
        let files = [handle("a", 13), handle("b", 12)];
        assert_eq!(crowded(&files), BTreeMap::new());
        let files = [handle("a", 13), handle("b", 13)];
        assert_eq!(crowded(&files), BTreeMap::from([("Some".to_owned(), 26)]));
    }

    #[test]
    fn a_path_in_the_code_leads_as_an_import_does_and_a_visibility_does_not() {
        let files = ring("pub(crate) struct E { a: crate::a::A }");
        assert_eq!(large(&files).len(), 1);
        let files = ring("pub(in crate::a) struct E;\n// crate::a::A");
        assert_eq!(large(&files), Vec::<Vec<&str>>::new());
    }

    #[test]
    fn methods_of_one_type_that_call_each_other_over_many_files_are_a_circle() {
        let of = |last: &str| -> Vec<TextFile> {
            let call = |name: &str, next: &str| {
                let text = format!("impl<'a> T<'a> {{ fn {name}(&self) {{ {next} }} }}");
                file(name, &text)
            };
            vec![
                file("lib", "struct T<'a>;"),
                call("a", "self.b()"),
                call("b", "self\n    .c::<u8>()"),
                call("c", "Self::d(self)"),
                call("d", "self.e()"),
                call("e", last),
            ]
        };
        let files = of("self.a()");
        let circle = ("host/x/src/a.rs: T".to_owned(), 5);
        assert_eq!(large_of_methods(&files), BTreeMap::from([circle]));
        for last in ["self.a.a()", "other.a()", "self.f()"] {
            assert!(large_of_methods(&of(last)).is_empty(), "{last}");
        }
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
