//! Components and their grants, with the checks of buckets, environment variables and requests.

use super::finding::{Finding, error};
use super::locations::text_variable;
use domain::confirm::Confirm;
use domain::digest::Digest;
use domain::egress::{EgressGrant, Host, PathPattern, Permit, Scheme, classify};
use domain::grant::{BucketGrant, DirectoryGrant, Grant, GuestLimits, PatternList, SecretGrant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// Components that come with the host, by their names in the configuration.
pub(crate) const BUILT_INS: [&str; 21] = [
    "assistant",
    "worker",
    "researcher",
    "tutor",
    "thought",
    "evaluator",
    "memory",
    "files",
    "web",
    "lists",
    "reading-list",
    "coder",
    "code",
    "external",
    "schedule",
    "heartbeat",
    "webhook",
    "files-watch",
    "telegram",
    "whatsapp",
    "slack",
];

/// The built-in components that are agents.
const BUILT_IN_AGENTS: [&str; 9] = [
    "assistant",
    "worker",
    "researcher",
    "tutor",
    "thought",
    "evaluator",
    "memory",
    "reading-list",
    "coder",
];

/// The built-in components that are triggers.
pub(crate) const BUILT_IN_TRIGGERS: [&str; 4] = ["schedule", "heartbeat", "webhook", "files-watch"];

/// A component and what it is granted. What is missing is not granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ComponentConfig {
    /// The WebAssembly file, relative to the config file's folder. Not needed for the built-in
    /// components.
    pub(crate) path: Option<PathBuf>,
    /// The SHA-256 digest of the file, in hexadecimal digits as `component inspect` prints it. A
    /// file with another digest is not loaded. No other code runs under this name, not even to
    /// finish work that it began before the pin was set.
    #[schemars(with = "Option<String>", regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub(crate) sha256: Option<Digest>,
    /// Folders that it may use. Its tools read them with the capability `files.read` and write them
    /// with `files.write`, which asks for `files.read` too.
    pub(crate) directories: Vec<DirectoryGrant>,
    /// HTTP requests that it may send. One of its tools sends them only if it names the capability
    /// `net.http`, and only for an agent that may have that. Every request and every redirect is
    /// recorded with the call.
    pub(crate) network: Vec<EgressGrant>,
    /// Environment variables that it sees, with their values. Its tools see them with the
    /// capability `env.read`. A name is not empty and has neither `=` nor NUL.
    pub(crate) environment: BTreeMap<String, EnvironmentValue>,
    /// Buckets of keys and values that it may use. Its tools read a bucket with the capability
    /// `<bucket>.read` and write it with `<bucket>.write`, which asks for `<bucket>.read` too.
    pub(crate) key_value: Vec<BucketGrant>,
    /// Secrets of this configuration that the host puts into its requests, with the capability
    /// `secrets.use`.
    pub(crate) secrets: Vec<SecretGrant>,
    /// Models that an agent component may ask, by alias, with `*` for any run of characters.
    /// Missing is none; all of them for the built-in agents.
    pub(crate) models: Option<PatternList>,
    /// Agents that an agent component may dispatch to, by `agentId`, within the lists of the agent
    /// that it drives. None by default; all of them for the built-in agents.
    pub(crate) agents: Option<PatternList>,
    /// Tools that are called only after a user has approved that very call, whoever makes it.
    /// `"destructive"` means the tools that declare themselves destructive; otherwise a list of
    /// patterns such as `["delete_*"]`.
    pub(crate) confirm: Confirm,
    /// The limits on one of its calls' use of the machine.
    pub(crate) limits: GuestLimits,
}

/// The value of an environment variable that a component sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum EnvironmentValue {
    /// This text.
    Text(String),
    /// The value of a variable in the host's own environment.
    Host(HostVariable),
}

/// A variable of the host's own environment, which has to be set when the host starts. Not for
/// secrets: a component sees the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostVariable {
    /// Its name.
    pub(crate) env: String,
}

impl EnvironmentValue {
    /// The value; none if the host's environment has no such variable, an empty one, or one that is
    /// not text, which the check refuses.
    pub(crate) fn value(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Host(HostVariable { env }) => text_variable(env),
        }
    }
}

impl ComponentConfig {
    /// The grant of a component of this name, with folders as seen from `folder`.
    pub(crate) fn grant(&self, name: &str, folder: &Path) -> Grant {
        let directories = self.directories.iter().map(|directory| DirectoryGrant {
            path: folder.join(&directory.path),
            ..directory.clone()
        });
        let own_agent = self.path.is_none() && BUILT_IN_AGENTS.contains(&name);
        let unless_named = |list: &Option<PatternList>| match list {
            Some(list) => list.clone(),
            None if own_agent => PatternList::everything(),
            None => PatternList::default(),
        };
        Grant {
            directories: directories.collect(),
            network: self.network.clone(),
            environment: self
                .environment
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.value()?)))
                .collect(),
            key_value: self.key_value.clone(),
            secrets: self.secrets.clone(),
            models: unless_named(&self.models),
            agents: unless_named(&self.agents),
            confirm: self.confirm.clone(),
            limits: self.limits,
        }
    }
}

/// Lists the names of the built-in components for a message.
pub(super) fn built_in_names() -> String {
    BUILT_INS.map(|name| format!("`{name}`")).join(", ")
}

/// Names that no bucket can have, and buckets that are granted twice.
pub(super) fn check_buckets(component: &str, granted: &[BucketGrant], findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for (index, grant) in granted.iter().enumerate() {
        let key = format!("components.{component}.keyValue[{index}]");
        if let Err(wrong) = BucketGrant::check_name(&grant.bucket) {
            findings.push(error(
                format!("{key}.bucket"),
                format!("`{}`: {wrong}", grant.bucket),
            ));
        }
        if !seen.insert(&grant.bucket) {
            let message = format!(
                "`{}` is granted twice: a component opens it by this name, with one scope and one \
                 access",
                grant.bucket
            );
            findings.push(error(format!("{key}.bucket"), message));
        }
    }
}

/// Every variable that no guest could be given.
pub(super) fn check_environment(
    component: &str,
    environment: &BTreeMap<String, EnvironmentValue>,
    findings: &mut Vec<Finding>,
) {
    for (name, value) in environment {
        findings.extend(wrong(name, value).map(|message| {
            error(
                format!("components.{component}.environment.{name}"),
                message,
            )
        }));
    }
}

fn wrong(name: &str, value: &EnvironmentValue) -> Option<String> {
    if !is_name(name) {
        return Some(
            "the name of an environment variable is not empty and has neither `=` nor NUL"
                .to_owned(),
        );
    }
    match value {
        EnvironmentValue::Text(text) => text
            .contains('\0')
            .then(|| "the value of an environment variable has no NUL".to_owned()),
        EnvironmentValue::Host(HostVariable { env }) if !is_name(env) => Some(
            "`env` is the name of a variable of the host's own environment: not empty, and with \
             neither `=` nor NUL"
                .to_owned(),
        ),
        EnvironmentValue::Host(HostVariable { env }) => value.value().is_none().then(|| {
            format!(
                "the host's environment variable `{env}` is not set, empty or not text; set it, \
                     or write the value here"
            )
        }),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Finds faulty grants of requests: entries that make no sense, repeat an earlier one or lead
/// nowhere, and a budget that admits nothing.
pub(super) fn check_network(
    component: &str,
    granted: &[EgressGrant],
    limits: &GuestLimits,
    findings: &mut Vec<Finding>,
) {
    for (index, grant) in granted.iter().enumerate() {
        let key = format!("components.{component}.network[{index}]");
        findings.extend(
            grant
                .check()
                .err()
                .map(|wrong| error(&key, wrong.to_string())),
        );
        let earlier = granted
            .iter()
            .take(index)
            .position(|earlier| covers(earlier, grant));
        findings.extend(earlier.map(|earlier| {
            let message = match granted.get(earlier) == Some(grant) {
                true => format!("the same stands in network[{earlier}]; take one of the two out"),
                false => format!(
                    "it never decides: the first entry that fits does, and network[{earlier}] fits \
                     all that this one does; put this one \
                     before it, or take one of the two out"
                ),
            };
            error(&key, message)
        }));
        findings.extend(
            nowhere(grant).map(|message| error(format!("{key}.privateAddresses"), message)),
        );
    }
    if !granted.is_empty() && limits.egress_bytes_max == 0 {
        let message = "with 0 no request leaves, and `network` grants some; name the bytes that a \
                       call may send and receive, or take \
                       `network` out";
        findings.push(error(
            format!("components.{component}.limits.egressBytesMax"),
            message,
        ));
    }
}

/// Returns whether the earlier entry admits every request of the later one. Patterns are not
/// compared.
fn covers(earlier: &EgressGrant, later: &EgressGrant) -> bool {
    let exactly = Host::parse(&later.host.to_string());
    let host = earlier.host == later.host || exactly.is_ok_and(|host| earlier.host.matches(&host));
    let ports = |scheme: Scheme| {
        later
            .ports
            .clone()
            .unwrap_or_else(|| vec![scheme.default_port()])
    };
    let has = |scheme: &Scheme| {
        earlier.schemes.contains(scheme)
            && ports(*scheme)
                .iter()
                .all(|port| earlier.has_port(*port, *scheme))
    };
    let path = earlier.path == later.path || earlier.path == PathPattern::default();
    host && path
        && later.schemes.iter().all(has)
        && later
            .methods
            .iter()
            .all(|method| earlier.methods.contains(method))
}

/// Returns why the one host of an entry can never be dialled under it.
pub(super) fn nowhere(grant: &EgressGrant) -> Option<String> {
    let host = Host::parse(&grant.host.to_string()).ok()?;
    let permit = Permit { grant, index: 0 };
    let barred = |address: IpAddr| permit.admits(address).is_err();
    match host {
        Host::Address(address) if barred(address) && classify(address).is_never_dialled() => {
            Some(format!(
                "`{}` is no address that anybody answers at; take the entry out",
                grant.host
            ))
        }
        Host::Address(address) if barred(address) => Some(format!(
            "`{}` is not public, so that no request goes there unless it is named: \
             privateAddresses = [\"{address}\"]",
            grant.host
        )),
        name if name.is_loopback()
            && barred(Ipv4Addr::LOCALHOST.into())
            && barred(Ipv6Addr::LOCALHOST.into()) =>
        {
            Some(format!(
                "`{}` is this machine, where no request goes unless its address is named: \
                 privateAddresses = [\"127.0.0.1\", \"::1\"]",
                grant.host
            ))
        }
        Host::Address(_) | Host::Name(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{ComponentConfig, check_environment, check_network};
    use domain::egress::EgressGrant;
    use domain::grant::GuestLimits;
    use serde_json::{Value, json};

    #[test]
    fn a_variable_that_no_guest_could_be_given_is_an_error_that_names_it() {
        for (environment, expected) in [
            (
                json!({ "LANG": "en", "EMPTY": "", "lower.case": "x", "PATH": { "env": "PATH" } }),
                None,
            ),
            (
                json!({ "": "x" }),
                Some("components.c.environment.: the name of an environment variable is not empty"),
            ),
            (
                json!({ "A=B": "x" }),
                Some("components.c.environment.A=B: the name"),
            ),
            (
                json!({ "A\0": "x" }),
                Some("components.c.environment.A\0: the name"),
            ),
            (
                json!({ "A": "x\0" }),
                Some("components.c.environment.A: the value of an environment variable has no NUL"),
            ),
            (
                json!({ "A": { "env": "" } }),
                Some("components.c.environment.A: `env` is the name"),
            ),
            (
                json!({ "A": { "env": "X=Y" } }),
                Some("components.c.environment.A: `env` is the name"),
            ),
            (
                json!({ "A": { "env": "AGENT_HOST_TEST_UNSET" } }),
                Some(
                    "components.c.environment.A: the host's environment variable \
                      `AGENT_HOST_TEST_UNSET` is not set",
                ),
            ),
        ] {
            let component: ComponentConfig =
                serde_json::from_value(json!({ "environment": environment })).unwrap();
            let mut findings = Vec::new();
            check_environment("c", &component.environment, &mut findings);
            let found = findings
                .first()
                .map(|finding| format!("{}: {}", finding.key, finding.message));
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(
                found.is_none_or(|found| found.starts_with(expected.unwrap_or_default())),
                "{expected:?}"
            );
        }
    }

    fn found(granted: &Value, limits: &Value) -> Vec<(String, String)> {
        let granted: Vec<EgressGrant> = serde_json::from_value(granted.clone()).unwrap();
        let limits: GuestLimits = serde_json::from_value(limits.clone()).unwrap();
        let mut findings = Vec::new();
        check_network("c", &granted, &limits, &mut findings);
        findings
            .into_iter()
            .map(|found| (found.key.replace("components.c.", ""), found.message))
            .collect()
    }

    #[test]
    fn an_entry_that_an_earlier_one_covers_is_refused_with_the_earlier_one() {
        for (first, second, says) in [
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example" }),
                "the same stands in network[0]",
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "responseBytesMax": 5 }),
                "it never decides",
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "path": "/x", "methods": ["GET"] }),
                "it never decides",
            ),
            (
                json!({ "host": "*.example.com" }),
                json!({ "host": "a.example.com", "ports": [443] }),
                "it never decides",
            ),
        ] {
            let found = found(&json!([first, second]), &json!({}));
            let [(key, message)] = found.as_slice() else {
                panic!("{first} {second}: {found:?}")
            };
            assert!(
                key == "network[1]" && message.contains(says) && message.contains("network[0]"),
                "{message}"
            );
        }
        for (first, second) in [
            (
                json!({ "host": "a.example", "path": "/x" }),
                json!({ "host": "a.example" }),
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "methods": ["POST"] }),
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "ports": [8443] }),
            ),
            (
                json!({ "host": "a.example" }),
                json!({ "host": "a.example", "schemes": ["http", "https"] }),
            ),
            (
                json!({ "host": "a.example.com" }),
                json!({ "host": "*.example.com" }),
            ),
        ] {
            assert_eq!(
                found(&json!([first, second]), &json!({})),
                [],
                "{first} {second}"
            );
        }
    }

    #[test]
    fn a_host_that_can_never_be_dialled_is_refused_with_the_address_to_name() {
        for (host, fix) in [
            ("10.1.2.3", "privateAddresses = [\"10.1.2.3\"]"),
            ("[::1]", "privateAddresses = [\"::1\"]"),
            ("localhost", "privateAddresses = [\"127.0.0.1\", \"::1\"]"),
            ("0.0.0.0", "take the entry out"),
        ] {
            let found = found(&json!([{ "host": host }]), &json!({}));
            let [(key, message)] = found.as_slice() else {
                panic!("{host}: {found:?}")
            };
            assert!(
                key == "network[0].privateAddresses" && message.contains(fix),
                "{message}"
            );
        }
        for fine in [
            json!({ "host": "10.1.2.3", "privateAddresses": ["10.0.0.0/8"] }),
            json!({ "host": "localhost", "privateAddresses": ["127.0.0.1"] }),
            json!({ "host": "1.1.1.1" }),
            json!({ "host": "intra.example" }),
        ] {
            assert_eq!(found(&json!([fine]), &json!({})), [], "{fine}");
        }
    }

    #[test]
    fn requests_without_a_byte_to_send_are_refused() {
        let found = |granted: Value| found(&granted, &json!({ "egressBytesMax": 0 }));
        assert!(
            matches!(found(json!([{ "host": "a.example" }])).as_slice(), [(key, _)] if key == "limits.egressBytesMax")
        );
        assert_eq!(found(json!([])), []);
    }
}
