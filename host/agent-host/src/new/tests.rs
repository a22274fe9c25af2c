//! Tests of projects as they are made and written; `tests/tests/all/new_project.rs` builds them.

use super::embedded::below as embedded_below;
use super::project::{Project, ProjectFile};
use super::{Kind, Language, New, no_template, write};
use clap::ValueEnum;
use domain::manifest::Manifest;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use wit_parser::Resolve;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder of the repository that `wanted` accepts, by their paths from the root.
fn below(folder: &str, wanted: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&path, wanted));
        } else if wanted(&path) {
            found.insert(path);
        }
    }
    found
}

fn embedded(folder: &str) -> BTreeSet<String> {
    let paths = embedded_below("").map(|(path, _)| path.to_owned());
    paths.filter(|path| path.starts_with(folder)).collect()
}

fn projects() -> impl Iterator<Item = (String, Vec<ProjectFile>)> {
    let languages = Language::value_variants().iter();
    languages.flat_map(|language| {
        let kinds = Kind::value_variants().iter();
        kinds.filter_map(move |kind| {
            let project = Project::new(*kind, *language, "word-count", None)?;
            Some((format!("{kind:?} in {language:?}"), project.files()))
        })
    })
}

/// `build.rs` finds them.
#[test]
fn the_program_carries_the_whole_sdk_and_interface_without_tests() {
    for folder in ["sdk/src", "sdk/shapes"] {
        let sdk = below(folder, &|path| !path.ends_with("/tests.rs"));
        assert_eq!(embedded(folder), sdk);
    }
    let wit = below("wit", &|path| {
        path.ends_with(".wit") && !path.starts_with("wit/frozen/")
    });
    assert_eq!(embedded("wit"), wit);
}

#[test]
fn modules_of_the_carried_sdk_are_all_there() {
    let sdk = embedded("sdk/");
    let sources = embedded_below("").filter(|(path, _)| sdk.contains(*path));
    for (path, file) in sources.filter(|(path, _)| path.ends_with(".rs")) {
        let text = file.in_project();
        let modules = text.lines().filter_map(|line| {
            let module = line.trim_start_matches("pub ").strip_prefix("mod ")?;
            module.strip_suffix(';')
        });
        let folder = path.trim_end_matches(".rs").trim_end_matches("/lib");
        for module in modules {
            let path = format!("{folder}/{module}.rs");
            assert!(sdk.contains(&path), "{path}");
        }
    }
}

#[test]
fn every_place_in_every_template_is_filled() {
    for (project, files) in projects() {
        let written = files
            .iter()
            .filter(|file| !file.path.starts_with("sdk/") && !file.path.starts_with("bindings/"));
        for file in written {
            // The placeholder of a secret is left as it is.
            let text = String::from_utf8_lossy(&file.bytes).replace("{{secret.", "");
            assert!(!text.contains("{{"), "{project}: {}: {text}", file.path);
        }
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), files.len(), "{project}: {paths:?}");
        for path in [
            "README.md",
            "agent-host.toml",
            ".gitignore",
            "wit/worlds.wit",
        ] {
            assert!(paths.contains(path), "{project}: {path}");
        }
    }
}

#[test]
fn a_kind_without_a_template_in_a_language_is_told_with_those_that_have_one() {
    for kind in [Kind::Tool, Kind::Agent] {
        assert_eq!(kind.languages(), Language::value_variants(), "{kind:?}");
    }
    for (kind, word) in [(Kind::Trigger, "trigger"), (Kind::Connector, "connector")] {
        assert!(Project::new(kind, Language::Python, "pager", None).is_none());
        let new = New {
            kind,
            name: "pager".to_owned(),
            lang: Language::Python,
        };
        let failure = no_template(&new);
        let reported =
            format!("there is no template of a {word} in `python`; there is one in `rust`");
        assert_eq!(failure.error.to_string(), reported);
        let advice = format!("agent-host new {word} pager --lang rust");
        assert_eq!(failure.advice.as_deref(), Some(&*advice));
    }
}

#[test]
fn projects_without_the_sdk_build_a_sound_manifest_in() {
    let program = Path::new("/opt/agent host/agent-host");
    for language in [Language::Python, Language::Js, Language::C] {
        for kind in [Kind::Tool, Kind::Agent] {
            let project = Project::new(kind, language, "word-count", Some(program)).unwrap();
            let files = project.files();
            let manifest = files.iter().find(|file| file.path == "manifest.json");
            let manifest = Manifest::parse(&manifest.unwrap().bytes).unwrap();
            assert_eq!(manifest.version, "0.1.0");
            let build = match language {
                Language::Js => "package.json",
                Language::C => "Makefile",
                Language::Python | Language::Rust => "README.md",
            };
            let build = files.iter().find(|file| file.path == build).unwrap();
            let text = String::from_utf8_lossy(&build.bytes);
            assert!(text.contains("agent-host plugin stamp"), "{text}");
            let [first, ..] = project.next("agent-host");
            let path = "export PATH='/opt/agent host':$PATH && ";
            assert!(first.contains(path), "the build finds the program: {first}");
        }
    }
}

/// The WIT of a page, between its fences.
fn wit_of(page: &str) -> &str {
    let (_, rest) = page.split_once("```wit\n").unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn a_world_of_an_authors_own_resolves_as_the_pages_tell_to_write_it() {
    let sdk = fs::read_to_string(root().join("sdk/README.md")).unwrap();
    for language in [Language::Python, Language::Js, Language::C] {
        let project = Project::new(Kind::Tool, language, "a", None).unwrap();
        let files = project.files();
        let readme = files.iter().find(|file| file.path == "README.md").unwrap();
        let readme = String::from_utf8(readme.bytes.clone()).unwrap();
        for page in [&sdk, &readme] {
            let here = tempfile::tempdir().unwrap();
            write(here.path(), "a", &files).unwrap();
            let wit = here.path().join("a/wit");
            fs::write(wit.join("mine.wit"), wit_of(page)).unwrap();
            let mut resolve = Resolve::default();
            let (package, _) = resolve.push_dir(&wit).unwrap();
            let world = resolve.select_world(&[package], Some("my-tool")).unwrap();
            let world = &resolve.worlds[world];
            let imports: Vec<String> = world
                .imports
                .keys()
                .map(|key| resolve.name_world_key(key))
                .collect();
            let wanted = wit_of(page).lines().filter_map(|line| {
                let import = line.trim().strip_prefix("import ")?;
                import.strip_suffix(';')
            });
            for import in wanted.chain(["agent-host:plugin/progress@0.2.0"]) {
                assert!(imports.iter().any(|there| there == import), "{imports:?}");
            }
            assert_eq!(world.exports.len(), 1, "{language:?}: the tools");
        }
    }
}

/// A released version of the interface never changes, so equal versions mean equal interfaces.
#[test]
fn the_bindings_for_c_are_those_of_the_present_interface() {
    let (_, worlds) = embedded_below("wit/worlds.wit").next().unwrap();
    let worlds = worlds.text();
    let package = worlds.lines().next().unwrap();
    let version = package.split(['@', ';']).nth(1).unwrap();
    for (kind, interface) in [(Kind::Tool, "tools"), (Kind::Agent, "agent")] {
        let project = Project::new(kind, Language::C, "a", None).unwrap();
        let files = project.files();
        let bindings = files
            .iter()
            .filter(|file| file.path.starts_with("bindings/"));
        let text: Vec<u8> = bindings.flat_map(|file| file.bytes.clone()).collect();
        let export = format!("agent-host:plugin/{interface}@{version}#describe");
        assert!(String::from_utf8_lossy(&text).contains(&export), "{export}");
    }
}

#[test]
fn a_project_is_written_whole_or_not_at_all_and_over_nothing() {
    let file = |path: &str| ProjectFile {
        path: path.to_owned(),
        bytes: b"new".to_vec(),
        is_run: false,
    };
    let files = [file("a"), file("b/c")];
    // A file cannot be in a file.
    let impossible = [file("a"), file("a/b")];
    let here = tempfile::tempdir().unwrap();
    let at = |path: &str| here.path().join(path);
    fs::create_dir(at("empty")).unwrap();
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/kept"), "old").unwrap();
    fs::write(at("file"), "old").unwrap();
    symlink("loop", at("loop")).unwrap();
    for (name, files, reported) in [
        ("fresh", &files[..], None),
        ("empty", &files[..], None),
        ("full", &files[..], Some("not an empty folder")),
        ("file", &files[..], Some("not an empty folder")),
        ("fresh", &files[..], Some("not an empty folder")),
        ("broken", &impossible[..], Some("cannot be written")),
        ("loop", &files[..], Some("`loop` cannot be written")),
    ] {
        let written = write(here.path(), name, files);
        match reported {
            None => {
                written.unwrap();
                assert_eq!(fs::read(at(name).join("b/c")).unwrap(), b"new", "{name}");
            }
            Some(reported) => {
                let failure = written.unwrap_err();
                assert!(
                    failure.error.to_string().contains(reported),
                    "{name}: {failure:?}"
                );
            }
        }
    }
    assert_eq!(fs::read(at("full/kept")).unwrap(), b"old");
    let left: BTreeSet<String> = fs::read_dir(here.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["empty", "file", "fresh", "full", "loop"].map(str::to_owned);
    assert_eq!(left, BTreeSet::from(expected));
}
