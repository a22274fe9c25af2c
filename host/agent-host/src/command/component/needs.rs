//! The needs of calls at the boundary, and the least grant that satisfies them.

mod requests;
#[cfg(test)]
mod tests;

use super::lines::{
    CHOOSE_A_FOLDER, Line, NOW_APART, RefusedEntry, a_bucket, a_folder_at, bucket, bucket_with,
    directory, folder_with, plain, raise_one, requests, stays_behind,
};
use crate::config::ComponentConfig;
use domain::authority::ToolRequirements as AskedBy;
use domain::egress::{EgressGrant, Traffic};
use domain::event::{BoundaryDecision, BoundaryVerdict, NOTHING_OPENED};
use domain::grant::{Access, BucketGrant, DirectoryGrant, SecretGrant, SecretSlot, capability};
use domain::ruling::Rule;
use domain::tool::ToolDefinition;
use requests::{Places, Requests, grant_of, request_to};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Parts of entries that are left to the operator.
const NAME_ADDRESSES: &str = "name the addresses that are not public in privateAddresses";
const ADD_PATHS: &str = "add the methods and the paths that the requests with secrets need";
const CHOOSE_A_SECRET: &str = "choose one of `secrets`, and its prefix if it has one";

/// One of the needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Files,
    Bucket(String),
    Environment,
}

/// The needs of the calls so far.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Needs that were met at least once.
    met: BTreeSet<Need>,
    /// The places of the component's folders, and what was opened elsewhere.
    places: Places,
    /// Capabilities that a tool used and does not declare, by the tool.
    undeclared: BTreeSet<(String, String)>,
    files: Option<Access>,
    requests: Requests,
    buckets: BTreeMap<String, Access>,
    environment: bool,
    /// The slots in which placeholders stood, and whether a secret went into them at least once.
    /// None where a placeholder stood elsewhere.
    secrets: BTreeMap<Option<Slot>, bool>,
}

impl Needs {
    /// Makes the needs of a component with folders at these places.
    pub(super) fn with_folders_at(places: impl IntoIterator<Item = String>) -> Self {
        Self {
            places: Places::new(places),
            ..Self::default()
        }
    }

    /// Forgets all but the places of the component's folders.
    pub(super) fn forget(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.forget();
        *self = Self {
            places,
            ..Self::default()
        };
    }

    /// Adds what a call of a tool did, and what it would have done. What the tool does not declare
    /// is kept apart: no grant opens it. Returns true if it needs a bucket that was not known
    /// before.
    pub(super) fn take_of(
        &mut self,
        tool: &ToolDefinition,
        decisions: &[BoundaryDecision],
        traffic: &Traffic,
    ) -> bool {
        let declared = AskedBy::from(tool).capabilities_needed();
        let is_declared = |name: &str| declared.iter().any(|known| known == name);
        let is_of_no_use = |decision: &&BoundaryDecision| {
            capability::is_capability(&decision.capability)
                && (decision.rule == Rule::NotAsked || !is_declared(&decision.capability))
        };
        // Many programs look at their environment before they do anything.
        let undeclared = decisions
            .iter()
            .filter(is_of_no_use)
            .filter(|decision| decision.capability != capability::ENV_READ);
        self.undeclared
            .extend(undeclared.map(|decision| (tool.name.clone(), decision.capability.clone())));
        let rest: Vec<BoundaryDecision> = decisions
            .iter()
            .filter(|decision| !is_of_no_use(decision))
            .cloned()
            .collect();
        if is_declared(capability::NET_HTTP) {
            return self.take(&rest, traffic);
        }
        let requests = !traffic.hops.is_empty();
        let undeclared = requests.then(|| (tool.name.clone(), capability::NET_HTTP.to_owned()));
        self.undeclared.extend(undeclared);
        self.take(&rest, &Traffic::default())
    }

    /// Adds what a call did, and what it would have done. Returns true if it needs a bucket that
    /// was not known before.
    fn take(&mut self, decisions: &[BoundaryDecision], traffic: &Traffic) -> bool {
        let before = self.buckets.clone();
        for decision in decisions
            .iter()
            .filter(|decision| decision.verdict != BoundaryVerdict::Limited)
        {
            let is_met = decision.verdict == BoundaryVerdict::Granted;
            let need = match decision.capability.as_str() {
                // The call failed, maybe for want of a folder, and used none.
                capability::FILES_READ if decision.detail.starts_with(NOTHING_OPENED) => {
                    self.places.take(decision);
                    None
                }
                capability::FILES_READ => {
                    self.files = self.files.max(Some(Access::ReadOnly));
                    self.places.take(decision);
                    Some(Need::Files)
                }
                capability::FILES_WRITE => {
                    self.files = Some(Access::ReadWrite);
                    self.places.take(decision);
                    Some(Need::Files)
                }
                capability::ENV_READ => {
                    self.environment = true;
                    Some(Need::Environment)
                }
                capability::SECRETS_USE => {
                    *self.secrets.entry(slot(&decision.detail)).or_default() |= is_met;
                    None
                }
                // The hops say more.
                capability::NET_HTTP => None,
                other => self.bucket(other),
            };
            self.met.extend(need.filter(|_| is_met));
        }
        traffic.hops.iter().for_each(|hop| self.requests.take(hop));
        self.buckets != before
    }

    fn bucket(&mut self, name: &str) -> Option<Need> {
        let (bucket, access) = capability::bucket(name)?;
        let known = self.buckets.entry(bucket.to_owned()).or_insert(access);
        *known = (*known).max(access);
        Some(Need::Bucket(bucket.to_owned()))
    }

    /// Returns what was only ever refused, here and by the host whose records were read.
    pub(super) fn only_refused(&self, config: &ComponentConfig) -> Vec<String> {
        let secrets = !self.slots(config, false).is_empty();
        let requests = self.requests.only_refused(&config.network);
        let all = self.granted_although_refused().into_iter();
        all.chain(requests)
            .chain(secrets.then(|| "secrets".to_owned()))
            .collect()
    }

    /// Returns what the lines grant although it was only ever refused.
    pub(super) fn granted_although_refused(&self) -> Vec<String> {
        let buckets = self.buckets.keys().cloned().map(Need::Bucket);
        let all = [
            self.files.map(|_| Need::Files),
            self.environment.then_some(Need::Environment),
        ];
        all.into_iter()
            .flatten()
            .chain(buckets)
            .filter(|need| !self.met.contains(need))
            .map(|need| need.describe())
            .collect()
    }

    /// Returns the entries that would allow the requests and the secrets that were only ever
    /// refused. The lines have none of them: a model may have asked for what nobody meant.
    pub(super) fn refused_entries(&self, config: &ComponentConfig) -> Vec<RefusedEntry> {
        let granted = &config.network;
        let unnamed = self.requests.are_addresses_unnamed(granted, false);
        let asked = self.requests.refused(granted).into_iter();
        let mut entries: Vec<RefusedEntry> = asked
            .map(|value| RefusedEntry::new("network", value, unnamed.then_some(NAME_ADDRESSES)))
            .collect();
        let slots = self.slots(config, false);
        let hosts = self.hosts_of_secrets(&slots, granted);
        let reported = self.requests.hosts(granted, false);
        let is_new = |written: &&str| {
            let host = at_port(written).0;
            !reported.contains(host) && grant_of(host, granted).is_none()
        };
        let hosts = hosts.into_iter().filter(is_new);
        let entry =
            |written: &str| RefusedEntry::new("network", request_to(written), Some(ADD_PATHS));
        entries.extend(hosts.map(entry));
        let secrets = slots.iter().map(|slot| match slot {
            Some(slot) => json!(secret_in(slot)),
            None => json!({
                "secret": "name", "host": "api.example.com", "slot": { "header": "authorization" },
            }),
        });
        entries.extend(
            secrets.map(|value| RefusedEntry::new("secrets", value, Some(CHOOSE_A_SECRET))),
        );
        entries
    }

    /// Returns what the lines alone do not mend.
    pub(super) fn notes(&self) -> Vec<String> {
        let undeclared = self.undeclared.iter().map(|(tool, capability)| {
            format!(
                "{tool} uses {capability} and does not declare it: no grant opens it; its author has \
                 to name it in the tool's `capabilities`"
            )
        });
        undeclared.chain(self.places.notes()).collect()
    }

    /// The names of the buckets.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &str> {
        self.buckets.keys().map(String::as_str)
    }

    /// The least grant, key by key, with the places, scopes and quotas that are granted already.
    pub(super) fn lines(&self, config: &ComponentConfig) -> Vec<Line> {
        let mut lines = Vec::new();
        lines.extend(
            self.files
                .map(|access| self.folders(&config.directories, access)),
        );
        lines.extend(self.network(config));
        if !self.buckets.is_empty() {
            lines.push(self.key_value(&config.key_value));
        }
        lines.extend(self.environment.then(|| plain("environment", config)));
        lines.extend(self.secrets(config));
        lines
    }

    /// The buckets that were needed, with no more access than that.
    fn key_value(&self, granted: &[BucketGrant]) -> Line {
        let mut choose = None;
        let least = self.buckets.iter().map(|(name, access)| {
            let there = granted.iter().find(|bucket| bucket.bucket == *name);
            bucket(&there.map_or_else(
                || a_bucket(name, *access),
                |there| {
                    let least = bucket_with(there, *access);
                    choose = choose.or((least.scope != there.scope).then_some(NOW_APART));
                    least
                },
            ))
        });
        let least = least.collect();
        Line::new("keyValue", least, !granted.is_empty(), choose)
    }

    /// The folders that are granted, with no more access than was needed, and one for each place
    /// where none is. The only folder is moved to where the calls look for one.
    fn folders(&self, granted: &[DirectoryGrant], access: Access) -> Line {
        if let ([folder], Some(at)) = (granted, self.places.moved()) {
            let least = folder_with(folder, access);
            let choose = stays_behind(granted, std::slice::from_ref(&least))
                .unwrap_or("the calls opened nothing at the `at` that it had");
            let moved = directory(&DirectoryGrant { at, ..least });
            return Line::new("directories", json!([moved]), true, Some(choose));
        }
        let new = self.places.missing();
        let is_writable = granted
            .iter()
            .any(|folder| folder.access == Access::ReadWrite);
        let mut all = granted.to_vec();
        match access {
            Access::ReadWrite if is_writable => {}
            Access::ReadWrite => raise_one(&mut all, access),
            Access::ReadOnly => all.iter_mut().for_each(|folder| folder.access = access),
        }
        let behind = stays_behind(granted, &all);
        let least = all.iter().map(directory);
        let added = new.iter().map(|at| a_folder_at(at, access));
        match (granted, new.as_slice()) {
            ([], []) => Line::new(
                "directories",
                json!([a_folder_at(requests::USUAL, access)]),
                false,
                Some(CHOOSE_A_FOLDER),
            ),
            ([], _) => Line::new("directories", added.collect(), false, Some(CHOOSE_A_FOLDER)),
            ([_], []) => Line::new("directories", least.collect(), true, behind),
            (_, []) => Line::new(
                "directories",
                least.collect(),
                true,
                behind.or(Some("leave out the folders that the calls do not use")),
            ),
            (_, _) => Line::new(
                "directories",
                least.chain(added).collect(),
                true,
                Some("choose a folder for each new place, or change an `at` instead"),
            ),
        }
    }

    fn network(&self, config: &ComponentConfig) -> Option<Line> {
        let granted = &config.network;
        let mut all = self.requests.least(granted);
        let slots = self.slots(config, true);
        let hosts = self.hosts_of_secrets(&slots, granted);
        all.extend(hosts.iter().map(|written| {
            grant_of(at_port(written).0, granted).map_or_else(|| request_to(written), requests)
        }));
        let choose = if self.requests.are_addresses_unnamed(granted, true) {
            Some(NAME_ADDRESSES)
        } else {
            (!hosts.is_empty()).then_some(ADD_PATHS)
        };
        (!all.is_empty()).then(|| Line::new("network", all.into(), !granted.is_empty(), choose))
    }

    fn secrets(&self, config: &ComponentConfig) -> Option<Line> {
        let slots = self.slots(config, true);
        if slots.is_empty() {
            return None;
        }
        let new: Vec<SecretGrant> = slots
            .into_iter()
            .flatten()
            .map(secret_in)
            .filter(|wanted| !config.secrets.iter().any(|there| there.is_beside(wanted)))
            .collect();
        if new.is_empty() && config.secrets.is_empty() {
            return Some(plain("secrets", config));
        }
        let choose = (!new.is_empty()).then_some(CHOOSE_A_SECRET);
        let all: Vec<&SecretGrant> = config.secrets.iter().chain(&new).collect();
        let is_there = !config.secrets.is_empty();
        Some(Line::new("secrets", json!(all), is_there, choose))
    }

    /// Returns the slots that were used or are granted, or the others.
    fn slots(&self, config: &ComponentConfig, open: bool) -> Vec<&Option<Slot>> {
        let is_granted = |slot: &Slot| {
            let wanted = secret_in(slot);
            let mut granted = config.secrets.iter();
            granted.any(|there| there.is_beside(&wanted))
        };
        let slots = self.secrets.iter().filter(|&(slot, used)| {
            let is_open = *used || slot.as_ref().is_some_and(is_granted);
            is_open == open
        });
        slots.map(|(slot, _)| slot).collect()
    }

    /// Returns the hosts of slots, as they are written with their ports, to which no request is in
    /// the lines. A request whose placeholder goes nowhere is not sent, and leaves no hop.
    fn hosts_of_secrets<'a>(
        &self,
        slots: &[&'a Option<Slot>],
        granted: &[EgressGrant],
    ) -> BTreeSet<&'a str> {
        let known = self.requests.hosts(granted, true);
        let bound = slots.iter().copied().filter_map(Option::as_ref);
        bound
            .map(|(host, ..)| host.as_str())
            .filter(|host| !known.contains(at_port(host).0))
            .collect()
    }
}

impl Need {
    fn describe(&self) -> String {
        match self {
            Self::Files => "files".to_owned(),
            Self::Bucket(bucket) => format!("the bucket {bucket}"),
            Self::Environment => "environment variables".to_owned(),
        }
    }
}

/// The slot in which a placeholder stood: the host, and its place there.
type Slot = (String, SecretSlot);

/// A host, and the port if one is written behind it.
fn at_port(written: &str) -> (&str, Option<u16>) {
    let parts = written
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    parts
        .and_then(|(host, port)| Some((host, Some(port.parse().ok()?))))
        .unwrap_or((written, None))
}

/// Reads host and slot of a placeholder from the detail in the ledger: its place, or the place that
/// the secret went to.
fn slot(detail: &str) -> Option<Slot> {
    if let Some((_, went)) = detail.split_once(" -> ") {
        let [host, kind, name] = went.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let slot = match kind {
            "header" => SecretSlot::Header(name.to_owned()),
            "path" => SecretSlot::Path(name.to_owned()),
            _ => SecretSlot::Query(name.to_owned()),
        };
        return Some((host.to_owned(), slot));
    }
    let is_header = detail.contains(" in the header ");
    let mut quoted = detail.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    let host = quoted.next()?;
    let slot = if is_header {
        SecretSlot::Header(name.to_owned())
    } else {
        SecretSlot::Query(name.to_owned())
    };
    Some((host.to_owned(), slot))
}

/// Returns the grant of a secret for a slot, whose name the operator chooses.
fn secret_in(slot: &Slot) -> SecretGrant {
    let (host, slot) = slot;
    let (host, port) = at_port(host);
    SecretGrant {
        secret: "name".to_owned(),
        host: host.to_owned(),
        port,
        slot: slot.clone(),
        prefix: String::new(),
    }
}
