//! The capabilities that tools declare against the interfaces that their component imports, and
//! against its manifest.

use super::finding::Finding;
use domain::grant::{Access, capability};
use domain::manifest::{BadManifest, Manifest, Wants};
use domain::tool::{EffectClass, ToolDefinition};
use runtime::Described;

/// The most letters in which a capability may differ from one that is meant.
const TYPING_MISTAKES_MAX: usize = 2;
/// The place of what is about imports.
const IMPORTS: &str = "imports";

/// A way out of a component, and the capability that opens it.
struct Outlet {
    /// The beginning of the interface's name.
    import: &'static str,
    /// The capability, as people name it.
    capability: &'static str,
    opened_by: fn(&str) -> bool,
    /// True if standard libraries import it for everybody.
    is_usual: bool,
}

/// All ways out that a grant opens.
const OUTLETS: [Outlet; 4] = [
    Outlet {
        import: "wasi:http/outgoing-handler",
        capability: capability::NET_HTTP,
        opened_by: |name| name == capability::NET_HTTP,
        is_usual: false,
    },
    Outlet {
        import: "wasi:keyvalue/",
        capability: "<bucket>.read",
        opened_by: is_of_bucket,
        is_usual: false,
    },
    Outlet {
        import: "wasi:filesystem/types",
        capability: capability::FILES_READ,
        opened_by: |name| matches!(name, capability::FILES_READ | capability::FILES_WRITE),
        is_usual: true,
    },
    Outlet {
        import: "wasi:cli/environment",
        capability: capability::ENV_READ,
        opened_by: |name| name == capability::ENV_READ,
        is_usual: true,
    },
];

/// Interfaces that every component may use, and what is peculiar about each here.
const OPEN: [(&str, &str); 3] = [
    (
        "wasi:clocks/",
        "open to all; within one step of an agent time stands still",
    ),
    (
        "wasi:random/",
        "open to all; an agent's randomness is the same whenever a step is run again",
    ),
    ("wasi:logging/", "open to all; kept in the host's log"),
];

/// Returns lines on the interfaces that need no capability.
pub(crate) fn open_imports(imports: &[String]) -> Vec<String> {
    let is_there = |prefix: &str| imports.iter().any(|import| import.starts_with(prefix));
    OPEN.iter()
        .filter(|(prefix, _)| is_there(prefix))
        .map(|(prefix, what)| format!("{}: {what}", prefix.trim_end_matches('/')))
        .collect()
}

/// Returns the findings on what a component declares and what it imports.
pub(crate) fn findings(described: &Described, imports: &[String]) -> Vec<Finding> {
    let (text, reason) = match described {
        Described::Agent(agent) => (&agent.summary, "users and other agents choose by it"),
        Described::Trigger(trigger) => (&trigger.summary, "operators choose by it"),
        Described::Connector(connector) => (&connector.summary, "operators choose by it"),
        Described::Tools(tools) => {
            let outlets = OUTLETS.iter();
            let outlets = outlets.flat_map(|outlet| outlet.findings(tools, imports));
            let capabilities = tools.iter().flat_map(of_tool);
            return capabilities
                .chain(outlets)
                .chain(sockets(imports))
                .collect();
        }
    };
    let is_open = |outlet: &&Outlet| {
        matches!(described, Described::Connector(_)) && outlet.capability == capability::NET_HTTP
    };
    let outlets = OUTLETS.iter().filter(|outlet| !is_open(outlet));
    let mut findings = closed(described.kind(), outlets, imports);
    findings.extend(summary(text, reason));
    findings
}

/// Returns the findings on ways out that are closed to a component of this kind, and that no
/// standard library imports by itself.
fn closed<'a>(
    kind: &str,
    outlets: impl IntoIterator<Item = &'a Outlet>,
    imports: &[String],
) -> Vec<Finding> {
    let unusual = outlets.into_iter().filter(|outlet| !outlet.is_usual);
    let found = unusual.filter_map(|outlet| outlet.imported(imports));
    let mut findings: Vec<Finding> = found
        .map(|import| {
            Finding::warning(
                IMPORTS,
                format!("{kind} imports {import}, which is open to tools alone"),
                "move that work into a tool, and have an agent call it",
            )
        })
        .collect();
    findings.extend(sockets(imports));
    findings
}

fn summary(summary: &str, reason: &str) -> Option<Finding> {
    summary.trim().is_empty().then(|| {
        Finding::warning(
            "describe.summary",
            "it is empty",
            format!("say its purpose in a sentence: {reason}"),
        )
    })
}

fn sockets(imports: &[String]) -> Option<Finding> {
    let import = imports
        .iter()
        .find(|import| import.starts_with("wasi:sockets/tcp") || import.contains("/udp"))?;
    Some(Finding::note(
        IMPORTS,
        format!("it imports {import}, and no grant opens sockets"),
        "send requests over `wasi:http`; nothing is to be done if a standard library imports it",
    ))
}

impl Outlet {
    fn imported<'a>(&self, imports: &'a [String]) -> Option<&'a str> {
        imports
            .iter()
            .find(|import| import.starts_with(self.import))
            .map(String::as_str)
    }

    fn findings(&self, tools: &[ToolDefinition], imports: &[String]) -> Vec<Finding> {
        let declares =
            |tool: &&ToolDefinition| tool.capabilities.iter().any(|c| (self.opened_by)(c));
        match self.imported(imports) {
            Some(import) if !tools.iter().any(|tool| declares(&tool)) => {
                vec![self.undeclared(import)]
            }
            Some(_) => Vec::new(),
            None => tools
                .iter()
                .filter(declares)
                .map(|tool| self.unused(tool))
                .collect(),
        }
    }

    fn undeclared(&self, import: &str) -> Finding {
        let name = self.capability;
        let what = format!("it imports {import}, and no tool declares `{name}`");
        if self.is_usual {
            let fix = format!(
                "declare `{name}` in the tools that use it; nothing is to be done if a standard \
                 library imports it"
            );
            return Finding::note(IMPORTS, what, fix);
        }
        let fix = format!(
            "add `{name}` to `capabilities` of the tool that uses it; without that every use is \
             refused, whatever is granted"
        );
        Finding::warning(IMPORTS, what, fix)
    }

    fn unused(&self, tool: &ToolDefinition) -> Finding {
        let import = self.import.trim_end_matches('/');
        let declared = tool.capabilities.iter().find(|name| (self.opened_by)(name));
        let declared = declared.map_or("", String::as_str);
        Finding::warning(
            place(tool),
            format!("it declares `{declared}`, and the component does not import {import}"),
            "take it out, so that nobody grants what is not used",
        )
    }
}

/// Returns the findings on one tool's capabilities and texts.
fn of_tool(tool: &ToolDefinition) -> Vec<Finding> {
    let place = place(tool);
    let mut findings: Vec<Finding> = tool
        .capabilities
        .iter()
        .filter_map(|name| mistakable(&place, name))
        .collect();
    let has = |name: &str| tool.capabilities.iter().any(|there| there == name);
    if has(capability::SECRETS_USE) && !has(capability::NET_HTTP) {
        findings.push(Finding::warning(
            place.clone(),
            "it declares `secrets.use` without `net.http`",
            "declare `net.http` too: secrets are put into requests and nowhere else",
        ));
    }
    let writes_bucket = |name: &&String| {
        capability::bucket(name).is_some_and(|(_, access)| access == Access::ReadWrite)
    };
    let writes = tool.capabilities.iter().find(writes_bucket);
    if let (EffectClass::ReadOnly, Some(name)) = (tool.effect, writes) {
        findings.push(Finding::warning(
            place.clone(),
            format!("it is read-only and declares `{name}`"),
            "make it idempotent or non-idempotent: a read-only tool gets its buckets read-only",
        ));
    }
    if tool.effect == EffectClass::ReadOnly && tool.destructive {
        findings.push(Finding::warning(
            place.clone(),
            "it is read-only and destructive at once",
            "say which of the two it is",
        ));
    }
    if tool.description.trim().is_empty() {
        findings.push(Finding::warning(
            place,
            "its description is empty",
            "say what it does and when to use it: models choose by it",
        ));
    }
    findings
}

/// Returns the finding of a bucket's capability that reads like one with a name of its own. A name
/// that is no capability is in no component that is loaded.
fn mistakable(place: &str, name: &str) -> Option<Finding> {
    capability::bucket(name)?;
    let (mistakes, known) = capability::NAMED
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .min()?;
    (mistakes <= TYPING_MISTAKES_MAX).then(|| {
        Finding::warning(
            place,
            format!("`{name}` stands for a bucket"),
            format!("write `{known}` if that is meant"),
        )
    })
}

fn is_of_bucket(name: &str) -> bool {
    capability::bucket(name).is_some()
}

/// Returns the place of a tool.
pub(crate) fn place(tool: &ToolDefinition) -> String {
    format!("tool `{}`", tool.name)
}

/// The place of all of them.
const MANIFEST: &str = "manifest";

/// Returns the findings on a manifest; nothing when there is none.
pub(crate) fn manifest_findings(
    manifest: Option<Result<&Manifest, &BadManifest>>,
    described: &Described,
) -> Vec<Finding> {
    match (manifest, described) {
        (None, _) => Vec::new(),
        (Some(Err(fault)), _) => vec![Finding::warning(
            MANIFEST,
            format!("it is not read: {fault}"),
            "mend the section `agent-host:manifest`; the component is loaded as if it had none",
        )],
        (Some(Ok(manifest)), Described::Agent(_)) if !manifest.wants.is_empty() => {
            vec![Finding::warning(
                MANIFEST,
                "it wants grants, and an agent is granted none of them",
                "leave `wants` out, and put it into the tools that the agent calls",
            )]
        }
        (Some(Ok(_)), Described::Agent(_)) => Vec::new(),
        (Some(Ok(manifest)), Described::Trigger(_)) => {
            let Wants {
                hosts,
                folders: _,
                buckets,
                secrets,
            } = &manifest.wants;
            let is_fit = hosts.is_empty() && buckets.is_empty() && secrets.is_empty();
            unfit(
                is_fit,
                "a trigger has use for folders alone, in which the host looks for it",
            )
        }
        (Some(Ok(manifest)), Described::Connector(_)) => {
            let is_fit = manifest.wants.folders.is_empty() && manifest.wants.buckets.is_empty();
            unfit(is_fit, "a connector has use for hosts and secrets alone")
        }
        (Some(Ok(manifest)), Described::Tools(tools)) => {
            let declared: Vec<&str> = tools
                .iter()
                .flat_map(|tool| &tool.capabilities)
                .map(String::as_str)
                .collect();
            undeclared(&manifest.wants, &declared)
        }
    }
}

/// Returns the finding on wants that a component has no use for.
fn unfit(is_fit: bool, why: &str) -> Vec<Finding> {
    let finding = || {
        let what = format!("it wants grants of other kinds: {why}");
        Finding::warning(MANIFEST, what, "take those wants out")
    };
    (!is_fit).then(finding).into_iter().collect()
}

/// Returns the wants that no tool declares a capability for.
fn undeclared(wants: &Wants, declared: &[&str]) -> Vec<Finding> {
    let has = |names: &[&str]| declared.iter().any(|name| names.contains(name));
    let files = [capability::FILES_READ, capability::FILES_WRITE];
    let mut missing = Vec::new();
    if !wants.hosts.is_empty() && !has(&[capability::NET_HTTP]) {
        missing.push(("hosts", capability::NET_HTTP.to_owned()));
    }
    if !wants.folders.is_empty() && !has(&files) {
        missing.push(("folders", files.join("` or `")));
    }
    if !wants.secrets.is_empty() && !has(&[capability::SECRETS_USE]) {
        missing.push(("secrets", capability::SECRETS_USE.to_owned()));
    }
    for bucket in &wants.buckets {
        let names = ["read", "write"].map(|verb| format!("{}.{verb}", bucket.bucket));
        if !declared
            .iter()
            .any(|name| names.iter().any(|own| own == name))
        {
            missing.push(("buckets", names.join("` or `")));
        }
    }
    let finding = |(list, capability): (&str, String)| {
        Finding::warning(
            MANIFEST,
            format!("it wants {list}, and no tool declares `{capability}`"),
            "declare it in `capabilities` of the tool that uses it, or take the want out",
        )
    };
    missing.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::{findings, undeclared};
    use domain::manifest::Manifest;
    use domain::tool::{EffectClass, ToolDefinition};
    use runtime::{AgentDescription, Described};
    use serde_json::json;

    fn tool(capabilities: &[&str]) -> ToolDefinition {
        ToolDefinition {
            name: "t".to_owned(),
            description: "Does it.".to_owned(),
            arguments: json!({}),
            results: None,
            capabilities: capabilities.iter().map(ToString::to_string).collect(),
            effect: EffectClass::NonIdempotent,
            destructive: false,
            time_limit_ms: None,
        }
    }

    fn lines(tools: Vec<ToolDefinition>, imports: &[&str]) -> Vec<String> {
        let imports: Vec<String> = imports.iter().map(ToString::to_string).collect();
        let findings = findings(&Described::Tools(tools), &imports);
        findings.iter().map(super::Finding::line).collect()
    }

    const HTTP: &str = "wasi:http/outgoing-handler@0.2.6";

    #[test]
    fn an_import_without_its_capability_and_the_reverse_are_told() {
        assert_eq!(
            lines(vec![tool(&["net.http"])], &[HTTP]),
            Vec::<String>::new()
        );
        let undeclared = lines(vec![tool(&[])], &[HTTP, "wasi:keyvalue/store@0.2.0-draft"]);
        assert!(
            undeclared.len() == 2
                && undeclared[0].starts_with("warning  imports: it imports wasi:http/outgoing")
                && undeclared[0].contains("no tool declares `net.http`")
                && undeclared[1].contains("no tool declares `<bucket>.read`"),
            "{undeclared:?}"
        );
        for name in ["net.http", "lists.write", "files.read", "env.read"] {
            let unused = lines(vec![tool(&[name])], &[]);
            assert!(
                unused.len() == 1 && unused[0].contains(&format!("it declares `{name}`, and")),
                "{unused:?}"
            );
        }
    }

    #[test]
    fn what_standard_libraries_import_is_only_noted() {
        let reported = lines(
            vec![tool(&[])],
            &["wasi:filesystem/types@0.2.6", "wasi:cli/environment@0.2.6"],
        );
        assert!(
            reported.len() == 2 && reported.iter().all(|line| line.starts_with("note ")),
            "{reported:?}"
        );
    }

    #[test]
    fn a_bucket_that_reads_like_another_capability_is_told_with_it() {
        let reported =
            |name: &str| lines(vec![tool(&[name])], &["wasi:keyvalue/store@0.2.0-draft"]);
        let expected = "warning  tool `t`: `file.read` stands for a bucket; write `files.read`";
        assert!(
            reported("file.read")[0].contains(expected),
            "{:?}",
            reported("file.read")
        );
        assert!(
            reported("lists.read").is_empty(),
            "{:?}",
            reported("lists.read")
        );
    }

    #[test]
    fn a_tool_that_contradicts_itself_is_told_so() {
        let reading = ToolDefinition {
            effect: EffectClass::ReadOnly,
            destructive: true,
            description: " ".to_owned(),
            ..tool(&["lists.write", "secrets.use"])
        };
        let reported = lines(vec![reading], &["wasi:keyvalue/store@0.2.0-draft"]).join("\n");
        for expected in [
            "without `net.http`",
            "read-only and declares `lists.write`",
            "read-only and destructive",
            "its description is empty",
        ] {
            assert!(reported.contains(expected), "{reported}");
        }
    }

    #[test]
    fn an_agent_that_imports_what_is_open_to_tools_alone_is_told() {
        let agent = AgentDescription {
            id: "a".to_owned(),
            display_name: "A".to_owned(),
            summary: String::new(),
            session_types: Vec::new(),
            wants: Vec::new(),
            memo_formats: Vec::new(),
        };
        let imports = [HTTP, "wasi:filesystem/types@0.2.6"].map(str::to_owned);
        let reported = findings(&Described::Agent(agent), &imports);
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert!(reported[0].what.contains("an agent imports wasi:http"));
    }

    #[test]
    fn a_want_without_a_capability_is_told() {
        let manifest = br#"{"manifest":1,"wants":{
            "hosts":[{"host":"a.example.com","reason":""}],
            "folders":[{"at":"/w","access":"read-only","reason":""}],
            "buckets":[{"bucket":"b","access":"read-only","reason":""}],
            "secrets":[{"secret":"s","host":"a.example.com","header":"x","reason":""}]
        }}"#;
        let wants = Manifest::parse(manifest).unwrap().wants;
        assert_eq!(undeclared(&wants, &[]).len(), 4);
        let declared = ["net.http", "files.write", "b.read", "secrets.use"];
        assert!(undeclared(&wants, &declared).is_empty());
    }
}
