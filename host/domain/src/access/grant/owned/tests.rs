//! Tests of the paths with placeholders, and of the names that ids get as folders.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn parsed(path: &str) -> FolderPattern {
    FolderPattern::parse(Path::new(path)).unwrap()
}

fn reported(path: &str) -> String {
    FolderPattern::parse(Path::new(path))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_path_is_a_base_and_what_each_owner_has_below_it() {
    let plain = parsed("/srv/work/../notes");
    assert_eq!(plain.base, Path::new("/srv/work/../notes"));
    assert!(!plain.is_owned());
    let owned = parsed("/srv/work/{user}/./notes/{session}");
    assert_eq!(owned.base, Path::new("/srv/work"));
    let below: Vec<String> = owned.below.iter().map(ToString::to_string).collect();
    assert_eq!(below, ["{user}", "notes", "{session}"]);
    assert_eq!(owned.owners_text(), "user and session");
    let owners = Owners {
        user: "Ann",
        agent: "a",
        session: "s-1",
    };
    assert_eq!(owned.names(owners).unwrap(), ["%41nn", "notes", "s-1"]);
    let nobody = Owners { user: "", ..owners };
    assert_eq!(owned.names(nobody), Err(Ownerless(Owner::User)));
    // A brace that is not closed is a letter like others.
    assert!(!parsed("/srv/{work").is_owned() && !parsed("/srv/work}").is_owned());
}

#[test]
fn a_word_in_braces_that_is_no_placeholder_is_refused_with_the_known_ones() {
    for (path, expected) in [
        ("/w/{usr}", "`{usr}` stands for nothing"),
        ("/w/{User}", "known are `{user}`, `{agent}`, `{session}`"),
        ("/w/{}", "`{}` stands for nothing"),
        ("/w/a-{user}", "`a-{user}` is a placeholder within a name"),
        ("/w/{user}{agent}", "is a placeholder within a name"),
        ("/w/{user}/{user}", "`{user}` is there twice"),
        ("/w/{user", "`{user` lacks a brace; write `{user}`"),
        ("/w/agent}/x", "`agent}` lacks a brace; write `{agent}`"),
        ("/w/{user}/../x", "`..` may not stand behind a placeholder"),
    ] {
        let reported = reported(path);
        assert!(reported.contains(expected), "{path}: {reported}");
    }
}

#[test]
fn a_folder_is_an_owners_if_an_id_has_its_name() {
    let agent = "0b2c7c1e-7d3a-4a5e-9d3e-2f3a1c4b5d6e";
    for (owner, name, is_owned) in [
        (Owner::User, "bob", true),
        (Owner::User, "%41nn", true),
        (Owner::User, "a.b@c-d_9", true),
        (Owner::User, "Bob", false),
        (Owner::User, ".git", false),
        (Owner::User, "%61nn", false),
        (Owner::User, "%4", false),
        (Owner::User, "two words", false),
        (Owner::User, "", false),
        (Owner::Agent, agent, true),
        (Owner::Session, agent, true),
        (Owner::Agent, "archive", false),
    ] {
        assert_eq!(owner.can_own(name), is_owned, "{owner} {name}");
    }
    let long = owner_name(&"x".repeat(OWNER_NAME_BYTES_MAX + 1)).unwrap();
    assert!(Owner::User.can_own(&long) && !Owner::User.can_own("%sha256-1"));
}

#[test]
fn names_of_ids_neither_escape_nor_collide_nor_hide() {
    for (id, name) in [
        ("local", "local"),
        ("a.b@c-d_9", "a.b@c-d_9"),
        (".", "%2e"),
        ("..", "%2e%2e"),
        (".ssh", "%2essh"),
        ("a.", "a%2e"),
        ("a/../b", "a%2f..%2fb"),
        ("Alice", "%41lice"),
        ("%41lice", "%2541lice"),
        ("ä", "%c3%a4"),
        ("a\0b", "a%00b"),
        ("a b\n", "a%20b%0a"),
    ] {
        assert_eq!(owner_name(id).unwrap(), name, "{id:?}");
    }
    assert_eq!(owner_name(""), None);
    let long = owner_name(&"x".repeat(OWNER_NAME_BYTES_MAX + 1)).unwrap();
    assert!(long.starts_with("%sha256-") && long.len() == 72, "{long}");
    assert_ne!(owner_name(&long).unwrap(), long);
    assert_eq!(
        owner_name(&"x".repeat(OWNER_NAME_BYTES_MAX)).unwrap().len(),
        OWNER_NAME_BYTES_MAX
    );
}

proptest! {
    #[test]
    fn any_ids_get_names_of_their_own_that_are_single_names(ids in prop::collection::btree_set(".{1,80}|[a-cA-C.%/]{1,6}", 1..20)) {
        let names: BTreeSet<String> = ids
            .iter()
            .map(|id| owner_name(id).unwrap().to_ascii_uppercase())
            .collect();
        prop_assert_eq!(names.len(), ids.len(), "letters of both cases are one here");
        for name in names {
            prop_assert!(!name.starts_with('.') && !name.contains('/') && !name.contains('\0'));
            prop_assert!(name.is_ascii() && (1..=OWNER_NAME_BYTES_MAX).contains(&name.len()));
        }
    }
}

#[test]
fn two_folders_below_one_base_are_apart_alike_or_unclear() {
    for (one, other, expected) in [
        ("{user}", "{user}", Meeting::Same),
        ("{user}/a", "{user}/b", Meeting::Apart),
        ("{user}/a", "{user}/A", Meeting::Unclear),
        ("{user}/a", "{user}", Meeting::Inside),
        ("{user}", "{user}/a", Meeting::Around),
        ("{user}", "{agent}", Meeting::Unclear),
        ("{user}/{session}", "{user}/notes", Meeting::Unclear),
        ("{user}/a", "{session}/b", Meeting::Unclear),
    ] {
        let [one, other] = [one, other].map(|below| parsed(&format!("/w/{below}")).below);
        assert_eq!(meeting(&one, &other), expected, "{one:?} {other:?}");
    }
}
