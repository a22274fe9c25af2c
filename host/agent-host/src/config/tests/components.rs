//! Components and what they are granted.

use super::super::{check, load};
use super::{file, findings, load_with};

/// Returns the findings about one granted folder, beside data, a key and a link to each of them.
fn granting(path: &str, at: &str, access: &str) -> Vec<String> {
    let (folder, file) = file(
        "c.toml",
        &format!(
            "[server]\ndataDir = \"state/../state/data\"\ntokenFile = \"secrets/token\"\n\
             [providers.p]\nkind = \"anthropic\"\napiKeyFile = \"keys/linked\"\n\
             [components.files]\npath = \"c.toml\"\ndirectories = [{{ path = \"{path}\", at = \
             \"{at}\", access = \"{access}\" }}]\n"
        ),
    );
    for made in ["state/data/cache", "secrets", "keys", "real-keys", "work"] {
        std::fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    for (link, to) in [
        ("to-data", "state/data"),
        ("work/up", ".."),
        ("keys/linked", "../real-keys/key"),
    ] {
        std::os::unix::fs::symlink(to, folder.path().join(link)).unwrap();
    }
    std::fs::write(folder.path().join("real-keys/key"), "k").unwrap();
    let found = check(&load(&file, []).unwrap());
    found
        .into_iter()
        .filter(|finding| finding.key.starts_with("components"))
        .map(|finding| finding.message)
        .collect()
}

#[test]
fn a_granted_folder_holds_nothing_of_the_hosts_own() {
    for (path, access, holds) in [
        ("state/data", "read-only", "data of the host"),
        ("state", "read-only", "data of the host"),
        ("state/data/cache", "read-write", "data of the host"),
        ("work/../state/data", "read-only", "data of the host"),
        ("to-data", "read-only", "data of the host"),
        ("work/up", "read-only", "data of the host"),
        ("secrets", "read-only", "the token of the API"),
        ("keys", "read-write", "the key of the provider `p`"),
        ("real-keys", "read-only", "the key of the provider `p`"),
        ("/", "read-only", "data of the host"),
    ] {
        let found = granting(path, "/w", access);
        let [message] = found.as_slice() else {
            panic!("{path}: {found:?}")
        };
        assert!(
            message.contains(&format!("` holds {holds}")),
            "{path}: {message}"
        );
    }
    assert_eq!(granting("work", "/w", "read-write"), [""; 0]);
}

#[test]
fn a_folder_of_the_configuration_or_of_components_may_be_granted_for_reading_alone() {
    for (granted, says) in [
        (".", "which no component may have"),
        ("plugins", "holds the file of the component `mine`"),
    ] {
        let folder = |access: &str| {
            format!(
                "directories = [{{ path = \"{granted}\", at = \"/w\", access = \"{access}\" }}]"
            )
        };
        let (dir, file) = file(
            "c.toml",
            &format!(
                "[server]\ndataDir = \"/nowhere/data\"\n\
                 [components.mine]\npath = \"plugins/mine.wasm\"\n{}\n\
                 [components.other]\npath = \"c.toml\"\n{}\n",
                folder("read-only"),
                folder("read-write")
            ),
        );
        std::fs::create_dir(dir.path().join("plugins")).unwrap();
        std::fs::write(dir.path().join("plugins/mine.wasm"), "").unwrap();
        let found = check(&load(&file, []).unwrap());
        let found: Vec<_> = found
            .iter()
            .filter(|it| it.key.starts_with("comp"))
            .collect();
        let [finding] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(finding.key, "components.other.directories[0].path");
        assert!(finding.message.contains(says), "{}", finding.message);
    }
}

#[test]
fn a_place_of_a_folder_can_be_written_in_one_way_only() {
    for wrong in ["w", "", "/w/", "//w", "/w//x", "/./w", "/w/..", "/..", "//"] {
        let found = granting("work", wrong, "read-only");
        assert!(
            found
                .iter()
                .any(|message| message.starts_with(&format!("`{wrong}` must be a path such as"))),
            "{wrong}: {found:?}"
        );
    }
    for right in ["/", "/w", "/w/x", "/.w/..x"] {
        assert_eq!(granting("work", right, "read-only"), [""; 0], "{right}");
    }
}

#[test]
fn a_bucket_has_a_plain_name_of_its_own_and_a_quota_in_its_range() {
    let component = |buckets: &str| format!("[components.files]\n{buckets}");
    let bucket =
        |keys: &str| format!("[[components.files.keyValue]]\naccess = \"read-write\"\n{keys}\n");
    let name = "a bucket's name is 1 to 64 of a-z, 0-9, - and _";
    for (buckets, expected) in [
        (
            bucket("bucket = \"lists\"") + &bucket("bucket = \"reading_list-2\"\nscope = \"user\""),
            vec![],
        ),
        (
            bucket("bucket = \"Lists\""),
            vec![format!("keyValue[0].bucket: `Lists`: {name}")],
        ),
        (
            bucket("bucket = \"\""),
            vec![format!("keyValue[0].bucket: ``: {name}")],
        ),
        (
            bucket("bucket = \"files\""),
            vec![
                "keyValue[0].bucket: `files`: a bucket cannot be called `files`, `net`, `env`, \
                 `secrets`, `tools`, `models` or `agents`: its \
                 capabilities would be those of something else"
                    .to_owned(),
            ],
        ),
        (
            bucket("bucket = \"lists\"") + &bucket("bucket = \"lists\"\nscope = \"session\""),
            vec![
                "keyValue[1].bucket: `lists` is granted twice: a component opens it by this name, \
                  with one scope and one access"
                    .to_owned(),
            ],
        ),
        (
            bucket("bucket = \"lists\"\nbytesMax = 0\nkeysMax = 2000000"),
            vec![
                "keyValue[0].bytesMax: 0 is out of its range: it must be from 1 to \
                 67108864"
                    .to_owned(),
                "keyValue[0].keysMax: 2000000 is out of its range: it must be from 1 to \
                 1000000"
                    .to_owned(),
            ],
        ),
    ] {
        let loaded = load_with("c.toml", &component(&buckets), &[]).unwrap();
        let found: Vec<String> = check(&loaded)
            .into_iter()
            .filter_map(|finding| {
                Some(format!(
                    "{}: {}",
                    finding.key.strip_prefix("components.files.")?,
                    finding.message
                ))
            })
            .collect();
        assert_eq!(found, expected, "{buckets}");
    }
}

#[test]
fn a_call_is_not_to_compute_for_longer_than_it_lasts() {
    let wrong = |limits: &str| {
        let found = findings(&format!("[components.web]\nlimits = {{ {limits} }}\n"));
        found
            .into_iter()
            .find(|(_, key, _)| key == "components.web.limits.cpuMsMax")
            .map(|(.., message)| message)
    };
    let message = wrong("cpuMsMax = 5000, wallMsMax = 2000").unwrap();
    assert!(
        message.contains("make it at most 2000, or `wallMsMax` at least 5000"),
        "{message}"
    );
    assert_eq!(wrong("wallMsMax = 200"), None);
    assert_eq!(wrong("cpuMsMax = 5000, wallMsMax = 5000"), None);
}

#[test]
fn a_component_is_pinned_by_the_digest_of_its_file() {
    let pinned = |digest: &str| {
        load_with(
            "c.toml",
            &format!("[components.web]\nsha256 = \"{digest}\"\n"),
            &[],
        )
    };
    let digest = domain::digest::Digest::of(b"code");
    assert_eq!(
        pinned(&digest.hex()).unwrap().config.components["web"].sha256,
        Some(digest)
    );
    for wrong in ["", "abc", &digest.reference(), &digest.hex()[1..]] {
        let reported = pinned(wrong).unwrap_err();
        assert!(
            reported.contains("components.web.sha256")
                && reported.contains("64 hexadecimal digits"),
            "{reported}"
        );
    }
}
