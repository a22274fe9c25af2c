//! The house rules, run over this repository.

use agent_host_tidy::tree::{TextFile, files, root};
use agent_host_tidy::{
    banned, bindings, budgets, circles, docs, enclosed, folders, frozen, glossary, layers, lists,
    map, names, openings, packaging, references, requirements, source, test_names, widths,
};
use std::fs;
use std::process::Command;

/// The folders whose Rust files keep the house rules.
const SOURCE: [&str; 6] = ["host/", "sdk/", "guests/", "tests/", "examples/", "bench/"];

fn rust() -> Vec<TextFile> {
    let files = files().expect("the repository can be read");
    let rust: Vec<TextFile> = files
        .into_iter()
        .filter(|file| file.is("rs") && SOURCE.iter().any(|folder| file.path.starts_with(folder)))
        .collect();
    assert!(
        rust.len() > 20,
        "the check has lost its object: {} files",
        rust.len()
    );
    rust
}

/// Returns the files that are not tests only.
fn production() -> Vec<TextFile> {
    let mut files = rust();
    files.retain(|file| !file.is_only_tests());
    files
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("the file can be read")
}

#[track_caller]
fn none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn every_file_opens_with_a_sentence_and_is_finished() {
    none(&rust().iter().flat_map(source::check).collect::<Vec<_>>());
}

#[test]
fn no_comment_is_wider_than_the_code() {
    none(&widths::check_rustfmt(&read("rustfmt.toml")));
    none(&rust().iter().flat_map(widths::check).collect::<Vec<_>>());
}

#[test]
fn every_doc_comment_opens_with_a_noun_phrase_or_a_verb() {
    none(
        &production()
            .iter()
            .flat_map(openings::check)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_name_that_was_given_up_is_used() {
    let host = production();
    let host = host.iter().filter(|file| file.path.starts_with("host/"));
    none(&host.flat_map(banned::check).collect::<Vec<_>>());
    let files = files().expect("the repository can be read");
    let documents = files.iter().filter(|file| file.is("md"));
    none(
        &documents
            .flat_map(banned::check_document)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_word_that_the_glossary_gives_up_is_used() {
    let glossary = read("docs/glossary.md");
    let words = banned::given_up(&glossary);
    assert!(words.len() > 10, "the glossary has lost its table");
    let names = rust();
    let names = names
        .iter()
        .filter(|file| !file.path.starts_with("tests/tidy/"));
    none(
        &names
            .flat_map(|file| banned::check_words(file, &words))
            .collect::<Vec<_>>(),
    );
    let files = files().expect("the repository can be read");
    let documents = files
        .iter()
        .filter(|file| file.is("md") && file.path != "docs/glossary.md");
    none(
        &documents
            .flat_map(|file| banned::check_text(file, &words))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn words_of_habit_do_not_become_more() {
    let files = files().expect("the repository can be read");
    let counts = banned::habits(&files, lists::HABITS);
    let grown = lists::HABITS
        .iter()
        .zip(counts)
        .filter(|((_, most), count)| count > most);
    let grown =
        grown.map(|((word, most), count)| format!("`{word}` stands {count} times, {most} at most"));
    none(&grown.collect::<Vec<_>>());
}

#[test]
fn no_comment_refers_to_an_id_of_a_requirement() {
    none(
        &production()
            .iter()
            .flat_map(references::check)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_tuple_stands_for_several_bindings_or_parameters() {
    none(
        &production()
            .iter()
            .flat_map(bindings::check)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_file_and_function_keeps_its_budget_and_the_list_shrinks() {
    none(&budgets::compare(
        &budgets::over(&rust()),
        lists::OVER_BUDGET,
    ));
}

#[test]
fn no_circle_of_imports_is_large_and_the_list_shrinks() {
    let files = rust();
    let circles = circles::large(&files);
    let findings = budgets::compare(&circles::sizes(&circles), lists::CIRCLES);
    assert!(
        findings.is_empty(),
        "\n{}\n{circles:#?}",
        findings.join("\n")
    );
}

#[test]
fn no_circle_of_the_methods_of_a_type_is_large_and_the_list_shrinks() {
    let circles = circles::large_of_methods(&rust());
    none(&budgets::compare(&circles, lists::CIRCLES_OF_METHODS));
}

#[test]
fn no_handle_of_the_broker_is_crowded_and_the_list_shrinks() {
    none(&budgets::compare(
        &circles::crowded(&rust()),
        lists::CROWDED,
    ));
}

#[test]
fn commands_and_drivers_share_a_room_and_know_nothing_of_each_other() {
    none(&layers::check_rooms(&rust()));
}

#[test]
fn the_api_reads_through_the_handles_of_the_broker_alone() {
    none(&layers::check_reads(&rust()));
}

#[test]
fn the_map_has_few_rows_and_each_names_a_folder() {
    none(&map::check(&read("ARCHITECTURE.md"), |folder| {
        root().join(folder).is_dir()
    }));
}

#[test]
fn every_word_of_the_glossary_is_defined_once_by_the_file_it_names() {
    none(&glossary::check(&read("docs/glossary.md"), &rust()));
}

#[test]
fn every_test_has_a_short_name() {
    none(
        &rust()
            .iter()
            .flat_map(test_names::check)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn no_folder_of_domain_imports_from_a_later_one() {
    none(&rust().iter().flat_map(folders::check).collect::<Vec<_>>());
}

#[test]
fn the_shell_names_no_file_no_process_and_no_network() {
    let files: Vec<TextFile> = files()
        .expect("the repository can be read")
        .into_iter()
        .filter(|file| file.is("rs") && file.path.starts_with("interpreters/shell/"))
        .collect();
    assert!(files.len() > 5, "the check has lost its object");
    none(&files.iter().flat_map(enclosed::check).collect::<Vec<_>>());
}

#[test]
fn no_name_is_empty() {
    none(&rust().iter().flat_map(names::check).collect::<Vec<_>>());
}

#[test]
fn no_file_names_a_path_of_somebodys_machine() {
    none(
        &files()
            .expect("the repository can be read")
            .iter()
            .flat_map(source::machine_paths)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn the_unit_runs_as_a_user_that_lasts_and_can_do_what_the_host_needs() {
    none(&packaging::check(
        &read("packaging/agent-host.service"),
        &read("packaging/agent-host.sysusers.conf"),
    ));
}

#[test]
fn every_layer_knows_only_what_stands_left_of_it() {
    let mut folders: Vec<String> = fs::read_dir(root().join("host"))
        .expect("host/ can be read")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    folders.push("shapes".to_owned());
    folders.sort();
    let mut layers: Vec<&str> = layers::LAYERS.iter().map(|layer| layer.folder).collect();
    layers.sort_unstable();
    assert_eq!(
        folders, layers,
        "every folder of host/ is a layer of the table"
    );
    let check = |layer: &layers::Layer| {
        let manifest = fs::read_to_string(root().join(layer.path()).join("Cargo.toml"))
            .expect("a layer has a manifest");
        layers::check(layer, &manifest).expect("a manifest is TOML")
    };
    none(&layers::LAYERS.iter().flat_map(check).collect::<Vec<_>>());
}

/// Returns the packages that `cargo tree` lists, one per line with its features.
fn built(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "tree", "--locked", "--prefix", "none", "--format", "{p} {f}",
        ])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn wasmtime_is_built_with_no_feature_beyond_those_chosen() {
    none(&layers::check_features(&built(&[
        "--workspace",
        "--edges",
        "normal,dev",
    ])));
}

#[test]
fn the_tests_compile_nothing_again_that_the_demo_has_compiled() {
    let program = built(&["--package", "agent-host", "--edges", "normal,build"]);
    let tests = built(&["--workspace", "--edges", "normal,build,dev"]);
    none(&layers::check_shared(&program, &tests));
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let files = files().expect("the repository can be read");
    let broken = |file: &TextFile| {
        let targets = docs::links(file)
            .into_iter()
            .filter(|target| !root().join(target).exists());
        targets
            .map(|target| format!("{}: there is no {target}", file.path))
            .collect::<Vec<_>>()
    };
    none(
        &files
            .iter()
            .filter(|file| file.is("md"))
            .flat_map(broken)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_path_that_a_document_names_exists() {
    let files = files().expect("the repository can be read");
    let is_at_root = |folder: &str| root().join(folder).is_dir();
    let exists = |path: &str| {
        root().join(path).exists()
            || !path.contains('/') && files.iter().any(|file| file.name() == path)
    };
    let is_document = |file: &&TextFile| {
        file.is("md") && (file.folder().is_empty() || file.path.starts_with("docs/"))
    };
    let missing = |file: &TextFile| {
        docs::paths(&file.text, is_at_root)
            .into_iter()
            .filter(|path| !exists(path))
            .map(|path| format!("{}: there is no `{path}`", file.path))
            .collect::<Vec<_>>()
    };
    none(
        &files
            .iter()
            .filter(is_document)
            .flat_map(missing)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_command_that_a_document_names_is_one_of_the_entry_script() {
    let output = Command::new(root().join("x"))
        .arg("help")
        .output()
        .expect("the entry script runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let known = docs::commands(&help);
    let files = files().expect("the repository can be read");
    let unknown = |file: &TextFile| {
        let commands = docs::commands(&file.text)
            .into_iter()
            .filter(|command| !known.contains(command));
        commands
            .map(|command| format!("{}: `./x help` does not know `{command}`", file.path))
            .collect::<Vec<_>>()
    };
    none(
        &files
            .iter()
            .filter(|file| file.is("md"))
            .flat_map(unknown)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn every_requirement_names_the_tests_that_prove_it() {
    let tests = requirements::tests(&files().expect("the repository can be read"));
    for document in ["docs/requirements.md", "docs/attacks.md", "SECURITY.md"] {
        let text = fs::read_to_string(root().join(document)).expect("the document can be read");
        none(
            &requirements::check(&text, &tests)
                .into_iter()
                .map(|finding| format!("{document}: {finding}"))
                .collect::<Vec<_>>(),
        );
    }
}

#[test]
fn every_attack_of_the_list_is_made_every_night() {
    let (attacks, _): (Vec<TextFile>, Vec<TextFile>) = files()
        .expect("the repository can be read")
        .into_iter()
        .partition(|file| {
            file.path.starts_with("tests/tests/all/attacks/")
                || file.path.starts_with("tests/programs/wat/")
        });
    let list = fs::read_to_string(root().join("docs/attacks.md")).expect("the list can be read");
    let cited: Vec<String> = requirements::named(&list)
        .difference(&requirements::tests(&attacks))
        .cloned()
        .collect();
    let script = fs::read_to_string(root().join("x")).expect("the entry script can be read");
    let nightly = script
        .split_once("CITED=(")
        .and_then(|(_, rest)| rest.split_once(')'))
        .expect("the script lists what is cited")
        .0;
    assert_eq!(
        nightly.split_whitespace().collect::<Vec<_>>(),
        cited,
        "`CITED` of `x` has the tests outside of `attacks`, in order"
    );
}

#[test]
fn a_released_version_of_the_interface_never_changes() {
    let folder = root().join("wit/frozen");
    let mut kept: Vec<String> = fs::read_dir(&folder)
        .expect("wit/frozen/ can be read")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    kept.sort();
    let mut known: Vec<&str> = frozen::VERSIONS
        .iter()
        .map(|(version, _)| *version)
        .collect();
    known.sort_unstable();
    assert_eq!(
        kept, known,
        "every folder of wit/frozen/ is a version of the table, and the other way round"
    );
    for (version, digest) in frozen::VERSIONS {
        let found = frozen::digest(&folder.join(version)).expect("the folder can be read");
        assert_eq!(
            found, digest,
            "wit/frozen/{version}/ has changed; put it back, and make the change in a new version \
             of wit/"
        );
    }
}

#[test]
fn the_interface_is_the_frozen_one_of_its_version() {
    let read = |folder: &str| -> Vec<(String, String)> {
        let files = files().expect("the repository can be read");
        let inside = |file: TextFile| Some((file.path.strip_prefix(folder)?.to_owned(), file.text));
        files
            .into_iter()
            .filter(|file| file.is("wit"))
            .filter_map(inside)
            .filter(|(name, _)| !name.starts_with("frozen/"))
            .collect()
    };
    let current = read("wit/");
    let versions: Vec<Option<&str>> = current
        .iter()
        .filter(|(name, _)| !name.contains('/'))
        .map(|(_, text)| frozen::version(text))
        .collect();
    let version = versions
        .first()
        .copied()
        .flatten()
        .expect("a WIT file of the package says its version in its first line");
    assert!(
        versions.iter().all(|other| *other == Some(version)),
        "all files of wit/ are of one version: {versions:?}"
    );
    if frozen::VERSIONS
        .iter()
        .any(|(frozen, _)| *frozen == version)
    {
        let frozen = read(&format!("wit/frozen/{version}/"));
        assert_eq!(
            current, frozen,
            "wit/ is version {version}, which was released; give the package a new version to \
             change it"
        );
    }
}

#[test]
fn every_crate_that_a_release_ships_brings_its_licence() {
    let reported = Command::new(env!("CARGO_BIN_EXE_notices"))
        .output()
        .expect("it can be run");
    let faults = String::from_utf8_lossy(&reported.stderr);
    assert!(reported.status.success(), "\n{faults}");
    let notices = String::from_utf8_lossy(&reported.stdout);
    for name in ["\nwasmtime ", "\naxum ", "\nhtml5ever "] {
        assert!(notices.contains(name), "{name} is missing");
    }
}
