//! Tests of the names of exports, and of what both versions of the interface share.

use super::*;

#[test]
fn an_export_says_the_kind_and_the_version_of_a_plugin() {
    for (kind, version, name) in [
        (Kind::Agent, Version::V0_1, "agent-host:plugin/agent@0.1.0"),
        (Kind::Tools, Version::V0_2, "agent-host:plugin/tools@0.2.0"),
        (
            Kind::Trigger,
            Version::V0_1,
            "agent-host:plugin/trigger@0.1.0",
        ),
        (
            Kind::Connector,
            Version::V0_2,
            "agent-host:plugin/connector@0.2.0",
        ),
    ] {
        let export = Export { kind, version };
        assert_eq!(Export::parse(name), Some(export));
        assert_eq!(export.to_string(), name);
    }
    for other in [
        "agent-host:plugin/trigger@0.3.0",
        "agent-host:plugin/turn@0.2.0",
        "agent-host:plugin/agent",
        "acme:plugin/agent@0.2.0",
    ] {
        assert_eq!(Export::parse(other), None, "{other}");
    }
}

/// The types of one version serve both, so what they are made from has to be the same but for the
/// version and the comments.
#[test]
fn agents_and_tools_are_the_same_in_both_versions() {
    let read = |folder: &str, file: &str| {
        let path = format!(
            "{}/../../wit/{folder}{file}.wit",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().skip(1).map(str::trim);
        let words = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    for file in ["types", "turn", "agent", "tools"] {
        assert_eq!(read("", file), read("frozen/0.1.0/", file), "{file}.wit");
    }
}
