//! `component check`: what components ask for against what they are granted, with the lines that
//! would change it.

mod finding;
#[cfg(test)]
mod tests;

use super::lines::{AGENTS, Line, MODELS, Missing, Place, key_of};
use super::{configured, described, folder_lines, wanted};
use crate::answer::{Answer, lines};
use crate::command::pending::{Pending, left_behind_by};
use crate::config::{ComponentConfig, Loaded, check as check_config};
use crate::failure::Failure;
use crate::guests;
use crate::serve::{Reach, command_runtime};
use broker::Entry;
use domain::authority::{self, CapabilityStatus, Reviewed};
use domain::grant::{Grant, capability};
use finding::{Admissions, Pin, Refusals, Tally, about_content, faults, undeclared};
use runtime::Described;
use serde_json::{Value, json};

/// Interfaces that can be imported and that no grant opens.
const NEVER_OPEN: [&str; 1] = ["wasi:sockets/"];
/// Stands for the capabilities of all buckets.
const BUCKETS: &str = "<bucket>.*";
/// The interface through which requests go out.
const REQUESTS: &str = "wasi:http/outgoing-handler";
/// Capabilities that are about folders.
const FILES: [&str; 2] = [capability::FILES_READ, capability::FILES_WRITE];
/// Capabilities that the calls of connectors use when they are granted.
const USED_BY_CONNECTORS: [&str; 3] = [
    capability::NET_HTTP,
    capability::SECRETS_USE,
    capability::ENV_READ,
];
/// Interfaces, and the capabilities that open them.
const OPENED_BY: [(&str, &str); 4] = [
    ("wasi:filesystem/", "files.*"),
    (REQUESTS, capability::NET_HTTP),
    ("wasi:cli/environment", capability::ENV_READ),
    ("wasi:keyvalue/", BUCKETS),
];

/// Runs the command, for one component or for all. One that cannot be loaded ends it, after what is
/// known of those before.
/// The lines on what is wrong, odd and on record.
const FOUND: [(&str, &str); 3] = [
    ("/errors", "  error    {}"),
    ("/warnings", "  warning  {}"),
    ("/recorded", "  recorded {}"),
];

pub(super) async fn run(loaded: &Loaded, named: Option<&str>) -> Result<Answer, Failure> {
    let wanted: Vec<(String, ComponentConfig)> = match named {
        Some(named) => vec![(named.to_owned(), configured(loaded, named)?)],
        None => guests::wanted(loaded).into_iter().collect(),
    };
    let names = wanted.iter().map(|(name, _)| name.clone()).collect();
    let runtime = command_runtime(loaded, Reach::default()).await?;
    let (admissions, unknown) = Admissions::read(loaded, names).await?;
    let refusals = Refusals::read(loaded).await;
    let running = Pending::of_running(loaded).await;
    let mut findings = match running.as_ref().filter(|pending| pending.is_of(loaded)) {
        Some(pending) => pending.findings(),
        None => check_config(loaded),
    };
    findings.extend(left_behind_by(loaded, running.as_ref()).await.all());
    findings.extend(running.iter().flat_map(|it| it.moved_folders(loaded)));
    let mut tally = Tally::default();
    let mut answer = Answer::default().notice(unknown);
    for (name, config) in wanted {
        let entry = match guests::load_one(loaded, &runtime, name, &config).await {
            Ok(entry) => entry,
            Err(failure) => return Ok(answer.failing(failure)),
        };
        let faults = faults(&findings, &entry.name, &entry.grant);
        let pin = Pin::of(&entry, &admissions);
        let place = Place::in_config(loaded, &entry.name);
        let Review {
            statuses,
            imports,
            mut document,
            lines: reviewed,
        } = review(&entry, &config, &place);
        let mut warnings = undeclared(&imports, &statuses);
        warnings.extend(about_content(&findings, &entry.name));
        tally.count(&statuses, &warnings, &faults);
        if let Some(fields) = document.as_object_mut() {
            fields.extend([
                ("pinned".to_owned(), json!(pin.is_pinned)),
                ("replaces".to_owned(), json!(pin.replaces())),
                ("warnings".to_owned(), json!(warnings)),
                ("recorded".to_owned(), json!(refusals.of(&entry.name))),
                ("errors".to_owned(), json!(faults)),
            ]);
            fields.extend(manifest_fields(&entry));
        }
        let code = entry.component.digest().short();
        answer.lines.extend(
            std::iter::once(format!("{}@{code}", entry.name))
                .chain(pin_lines(&pin, &entry, loaded, running.as_ref()))
                .chain(at_the_edge(&entry))
                .chain(destructive(&entry, loaded))
                .chain(folder_lines(&entry.grant))
                .chain(wanted::describe(&entry.component))
                .chain(reviewed)
                .chain(places(&entry))
                .chain(lines(&document, &FOUND)),
        );
        answer.documents.push(document);
    }
    Ok(answer.failing(tally.failure()))
}

/// Returns the lines about the pinning of a component, and what gives its grant to other code.
fn pin_lines(pin: &Pin, entry: &Entry, loaded: &Loaded, running: Option<&Pending>) -> Vec<String> {
    let taken_by = match running {
        Some(host) if host.is_of(loaded) && !host.holds_code_of(&entry.name) => "`config apply`",
        Some(_) | None => "the next start",
    };
    let digest = entry.component.digest().to_string();
    pin.lines(&digest, loaded.is_toml(), taken_by)
}

/// Returns the lines on tools that declare themselves destructive. A user is asked where the grant
/// or each agent says so.
fn destructive(entry: &Entry, loaded: &Loaded) -> Vec<String> {
    let agents = &loaded.config.agents;
    described::destructive(entry.component.describes(), |tool| {
        let by_agents = || agents.iter().all(|agent| agent.confirm.asks(tool));
        entry.grant.confirm.asks(tool) || (!agents.is_empty() && by_agents())
    })
}

/// Returns what a document says about the manifest.
fn manifest_fields(entry: &Entry) -> [(String, Value); 2] {
    let manifest = entry.component.manifest();
    let fault = manifest.and_then(Result::err).map(ToString::to_string);
    [
        ("manifest".to_owned(), json!(manifest.and_then(Result::ok))),
        ("manifest_fault".to_owned(), json!(fault)),
    ]
}

/// Returns the lines that say what a trigger hears and what a connector can do; none of other
/// components, whose capabilities say it.
fn at_the_edge(entry: &Entry) -> Vec<String> {
    match entry.component.describes() {
        edge @ (Described::Trigger(_) | Described::Connector(_)) => described::lines(edge),
        Described::Agent(_) | Described::Tools(_) => Vec::new(),
    }
}

/// Returns the line that says where the tools of a component see its folders; none without folders.
fn places(entry: &Entry) -> Option<String> {
    let folders = entry.grant.directories.iter();
    let places: Vec<&str> = folders.map(|folder| folder.at.as_str()).collect();
    let has_tools = matches!(entry.component.describes(), Described::Tools(_));
    (has_tools && !places.is_empty()).then(|| {
        format!(
            "  folders  its tools find them at {}, and no file elsewhere",
            places.join(", ")
        )
    })
}

/// The status of a component under its grant.
pub(crate) struct Review {
    statuses: Vec<Reviewed>,
    imports: Vec<Import>,
    /// Capabilities and imports, each with its status, and the lines that grant what is refused.
    pub(crate) document: Value,
    /// The same for people.
    pub(crate) lines: Vec<String>,
}

/// Compares what a loaded component asks for with its grant.
pub(crate) fn review(entry: &Entry, config: &ComponentConfig, place: &Place) -> Review {
    let statuses = statuses(entry);
    let imports = imports_of(entry);
    let lines = grant_lines(entry, config, &statuses);
    let code = entry.component.digest().reference();
    let is_toml = place.is_toml();
    Review {
        document: document(&entry.name, &code, &statuses, &lines, &imports, is_toml),
        lines: report_lines(place, &statuses, &lines, &imports),
        statuses,
        imports,
    }
}

/// Returns whether a tool of a component declares a capability. Other components have no tools, so
/// nothing is missed there.
fn declares(entry: &Entry, capability: &str) -> bool {
    let Described::Tools(tools) = entry.component.describes() else {
        return true;
    };
    let mut declared = tools.iter().flat_map(|tool| &tool.capabilities);
    declared.any(|name| match capability {
        BUCKETS => capability::bucket(name).is_some(),
        capability => name == capability,
    })
}

/// Returns the status of each capability. An agent component asks for models and agents by its
/// nature, and a connector for requests.
fn statuses(entry: &Entry) -> Vec<Reviewed> {
    let grant = &entry.grant;
    match entry.component.describes() {
        Described::Tools(tools) => {
            let manifest = entry.component.manifest().and_then(Result::ok);
            let wants_secret = manifest.is_some_and(|it| !it.wants.secrets.is_empty());
            of_tools(authority::review(tools, grant), wants_secret)
        }
        Described::Agent(_) => vec![
            by_nature(MODELS, !grant.models.is_empty()),
            by_nature(AGENTS, !grant.agents.is_empty()),
        ],
        Described::Trigger(_) => of_trigger(grant),
        Described::Connector(_) => of_connector(grant, entry.component.imports()),
    }
}

fn by_nature(capability: &str, is_granted: bool) -> Reviewed {
    Reviewed {
        capability: capability.to_owned(),
        status: if is_granted {
            CapabilityStatus::Granted
        } else {
            CapabilityStatus::Refused
        },
        tools: Vec::new(),
    }
}

/// Returns the status of what tools ask for. Where the manifest wants no secret, a tool that can
/// send one needs none: which service it asks is the operator's choice.
fn of_tools(mut statuses: Vec<Reviewed>, wants_secret: bool) -> Vec<Reviewed> {
    let is_choice = |it: &&mut Reviewed| {
        it.capability == capability::SECRETS_USE && it.status == CapabilityStatus::Refused
    };
    if !wants_secret {
        for reviewed in statuses.iter_mut().filter(is_choice) {
            reviewed.tools.clear();
        }
    }
    statuses
}

/// Returns the status of what a trigger is granted. It reaches nothing itself; in its folders the
/// host looks for what it is to hear of.
fn of_trigger(grant: &Grant) -> Vec<Reviewed> {
    let all = authority::review(&[], grant).into_iter();
    let of_host = |it: &Reviewed| FILES.contains(&it.capability.as_str());
    all.filter(|it| !of_host(it)).collect()
}

/// Returns the status of what a connector is granted, and that of requests if it can send any.
fn of_connector(grant: &Grant, imports: &[String]) -> Vec<Reviewed> {
    let mut statuses = authority::review(&[], grant);
    for reviewed in &mut statuses {
        if USED_BY_CONNECTORS.contains(&reviewed.capability.as_str()) {
            reviewed.status = CapabilityStatus::Granted;
        }
    }
    let sends = imports.iter().any(|import| import.starts_with(REQUESTS));
    if sends && grant.network.is_empty() {
        statuses.push(by_nature(capability::NET_HTTP, false));
    }
    statuses
}

/// Returns the lines that grant what the manifest wants and what is refused.
fn grant_lines(entry: &Entry, config: &ComponentConfig, statuses: &[Reviewed]) -> Vec<Line> {
    wanted::lines_with(&entry.component, config, &missing(statuses))
}

/// Returns whether a component lacks a grant: one that is refused and needed.
fn is_missing(reviewed: &Reviewed) -> bool {
    reviewed.status == CapabilityStatus::Refused && use_of(reviewed).is_none()
}

/// Returns what a capability would be needed for that a component asks for by its nature, without
/// a tool. A component without it is in order: most agents need no others, and most services no
/// secret.
fn use_of(reviewed: &Reviewed) -> Option<&'static str> {
    match reviewed.capability.as_str() {
        _ if !reviewed.tools.is_empty() => None,
        AGENTS => Some("it hands work to others"),
        capability::SECRETS_USE => Some("a service that it asks takes a secret"),
        _ => None,
    }
}

fn missing(statuses: &[Reviewed]) -> Missing {
    let refused = statuses.iter().filter(|reviewed| is_missing(reviewed));
    Missing::of(refused.map(|reviewed| reviewed.capability.as_str()))
}

/// Returns the lines for people.
fn report_lines(
    place: &Place,
    statuses: &[Reviewed],
    lines: &[Line],
    imports: &[Import],
) -> Vec<String> {
    let is_imported = |capability: &str| {
        let mut missed = imports.iter().filter(|import| import.is_undeclared);
        missed.any(|import| import.opened_by == Some(capability))
    };
    let mut report: Vec<String> = statuses
        .iter()
        .filter(|it| !(it.status == CapabilityStatus::Unused && is_imported(&it.capability)))
        .map(status)
        .collect();
    report.extend(imports.iter().filter_map(Import::line));
    let blocks = place.describe(lines).into_iter();
    report.extend(blocks.map(|line| format!("  {line}")));
    report
}

fn status(reviewed: &Reviewed) -> String {
    let Reviewed {
        capability,
        status,
        tools,
    } = reviewed;
    let asked_by = if tools.is_empty() {
        String::new()
    } else {
        format!("asked by {}", tools.join(", "))
    };
    match (status, use_of(reviewed)) {
        (CapabilityStatus::Granted, _) => format!("  granted  {capability:<16} {asked_by}"),
        (CapabilityStatus::Unused, _) => format!(
            "  unused   {capability:<16} granted, and nothing asks for it: take it out of the grant"
        ),
        (CapabilityStatus::Refused, Some(uses)) => {
            format!("  not granted: {capability} (needed only if {uses})")
        }
        (CapabilityStatus::Refused, None) => format!("  refused  {capability:<16} {asked_by}"),
    }
}

/// Returns the document for programs. It has, for each refused capability, the line that grants it.
fn document(
    component: &str,
    code: &str,
    statuses: &[Reviewed],
    lines: &[Line],
    imports: &[Import],
    is_toml: bool,
) -> Value {
    let capabilities: Vec<Value> = statuses
        .iter()
        .map(|reviewed| {
            let key = key_of(&reviewed.capability).filter(|_| is_missing(reviewed));
            let line = key.and_then(|key| lines.iter().find(|line| line.key == key)).map(|line| line.text(is_toml));
            json!({
                "capability": reviewed.capability, "status": reviewed.status, "tools": reviewed.tools, "key": key, "line": line,
            })
        })
        .collect();
    let lines: Vec<Value> = lines.iter().map(|line| line.document(is_toml)).collect();
    let imports: Vec<Value> = imports
        .iter()
        .map(|import| json!({ "interface": import.interface, "opened_by": import.opened_by }))
        .collect();
    json!({ "component": component, "code": code, "capabilities": capabilities, "lines": lines, "imports": imports })
}

/// An import that reaches out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Import {
    interface: String,
    /// The capability that opens it; none when nothing does.
    opened_by: Option<&'static str>,
    /// True if no tool declares that capability, and programs do not import it by themselves.
    is_undeclared: bool,
}

impl Import {
    fn line(&self) -> Option<String> {
        let interface = &self.interface;
        match self.opened_by {
            // A warning says more.
            Some(_) if self.is_undeclared => None,
            Some(capability) => Some(format!(
                "  import   {interface}: open to tools that declare {capability}"
            )),
            None => Some(format!("  import   {interface}: no grant opens it")),
        }
    }
}

/// The imports of a component that reach out.
fn imports_of(entry: &Entry) -> Vec<Import> {
    let all = imports(entry.component.imports(), &|it: &str| declares(entry, it));
    match entry.component.describes() {
        Described::Tools(_) => all,
        Described::Agent(_) | Described::Trigger(_) | Described::Connector(_) => never_open(all),
    }
}

/// Leaves out what is open to tools that ask for it: other components have none, and what languages
/// bring with them imports it all the same.
fn never_open(imports: Vec<Import>) -> Vec<Import> {
    let closed = imports.into_iter();
    closed.filter(|it| it.opened_by.is_none()).collect()
}

/// The imports that reach out, of a component whose tools declare these capabilities.
fn imports(all: &[String], declares: &dyn Fn(&str) -> bool) -> Vec<Import> {
    let reaching = all.iter().filter_map(|import| {
        let never = NEVER_OPEN.iter().any(|prefix| import.starts_with(prefix));
        let opened_by = OPENED_BY
            .iter()
            .find(|(prefix, _)| import.starts_with(prefix))
            .map(|(_, capability)| *capability);
        (never || opened_by.is_some()).then(|| Import {
            interface: import.clone(),
            is_undeclared: opened_by.is_some_and(|capability| match capability {
                capability::NET_HTTP => !declares(capability),
                BUCKETS => !declares(BUCKETS),
                // What languages bring with them imports these, used or not.
                _ => false,
            }),
            opened_by,
        })
    });
    reaching.collect()
}
