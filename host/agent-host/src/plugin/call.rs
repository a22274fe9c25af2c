//! One call of a tool in isolation: its rights, its segments, and the way in which it ended.
//!
//! It gets a temporary folder, buckets of its own, and no network: a request is refused.

use super::cases::{Case, Ending, Left, VisibleResult};
use super::finding::tail;
use crate::failure::Failure;
use crate::guests::{isolated_call, rulings};
use crate::log::GuestStderr;
use anyhow::{Context, anyhow};
use async_trait::async_trait;
use broker::Catalogue;
use domain::bucket::BucketSize;
use domain::grant::{Access, Bound, BucketGrant, DirectoryGrant, GuestLimits, capability};
use domain::message::text_of;
use domain::operation::{CallUsage, Progress};
use domain::tool::{ToolDefinition, ToolError};
use runtime::{
    BucketError, Buckets, Called, Component, Hold, LogLine, Outcome, Runtime, Unheard, Written,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// Segments of one call.
const SEGMENTS_MAX: u32 = 16;
/// Bytes of a file that is read back after a call: 1 MiB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A component under test, with what runs it.
pub(crate) struct Kit {
    pub(crate) runtime: Runtime,
    pub(crate) catalogue: Catalogue,
    pub(crate) component: Arc<Component>,
    pub(crate) limits: GuestLimits,
    /// The stderr of guests that a host of its own runs.
    pub(crate) stderr: GuestStderr,
}

/// The way in which a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// It returned, with a result or an error.
    VisibleResult(VisibleResult),
    /// It did not return anything that a host takes.
    Stopped(Stopped),
}

/// The reason why a call returned nothing, and the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) what: String,
    pub(crate) fix: String,
    /// The last lines that a guest which ended itself wrote to stderr.
    pub(crate) stderr: Vec<String>,
}

impl CallEnd {
    /// Returns what is to be told of stderr.
    pub(crate) fn stderr(&self) -> &[String] {
        match self {
            Self::VisibleResult(_) => &[],
            Self::Stopped(stopped) => &stopped.stderr,
        }
    }
}

/// Everything that remains of a call.
#[derive(Debug)]
pub(crate) struct Performed {
    pub(crate) end: CallEnd,
    pub(crate) usage: CallUsage,
    pub(crate) left: Left,
    /// The requests that it would have sent.
    pub(crate) requests: BTreeSet<String>,
}

impl Kit {
    /// Calls a tool in the setting of a case, with these arguments and without looking at them.
    ///
    /// # Errors
    /// This machine could not do its part.
    pub(crate) async fn perform(
        &self,
        tool: &ToolDefinition,
        case: &Case,
        arguments: &Value,
    ) -> Result<Performed, Failure> {
        let folder = tempfile::tempdir()?;
        for (path, text) in &case.files {
            put(&folder.path().join(path), text)
                .with_context(|| format!("`{path}` of {} cannot be written", case.name))?;
        }
        let bound = self.bound(tool, case, folder.path());
        self.runtime.open_folders(&bound.directories, &[])?;
        let mut performed = self.segments(tool, case, &bound, arguments).await?;
        for path in case.expect.files.keys() {
            let file = folder.path().join(path);
            let is_small =
                std::fs::metadata(&file).is_ok_and(|about| about.len() <= FILE_BYTES_MAX);
            if let Some(text) = is_small
                .then(|| std::fs::read_to_string(&file).ok())
                .flatten()
            {
                performed.left.files.insert(path.clone(), text);
            }
        }
        Ok(performed)
    }

    /// Runs a call, segment by segment. Waiting for a later one is skipped.
    async fn segments(
        &self,
        tool: &ToolDefinition,
        case: &Case,
        bound: &Bound,
        arguments: &Value,
    ) -> Result<Performed, Failure> {
        let mut call = isolated_call("plugin-test", &tool.name, arguments);
        let mut answers = case.answers.iter();
        let mut usage = CallUsage::default();
        let mut requests = BTreeSet::new();
        let mut buckets = GivenBuckets::new(&case.buckets);
        loop {
            let called = self
                .runtime
                .call(
                    &self.component,
                    bound,
                    call.clone(),
                    Arc::new(Unheard),
                    Arc::new(buckets.clone()),
                )
                .await;
            buckets.commit(&called.written);
            add(&mut usage, &called.usage);
            requests.extend(asked_for(&called));
            let end = match called.outcome {
                Outcome::Returned(Ok(Progress::Done { parts })) => {
                    match self.catalogue.result_fault(&tool.name, &parts).await {
                        None => seen(Ending::Done, text_of(&parts)),
                        Some(fault) => CallEnd::Stopped(unfit_result(&fault)),
                    }
                }
                Outcome::Returned(Ok(Progress::Later { state, .. })) => {
                    call.resumed = Some(state);
                    call.answer = None;
                    call.segment += 1;
                    if call.segment < SEGMENTS_MAX {
                        continue;
                    }
                    CallEnd::Stopped(endless())
                }
                Outcome::Returned(Ok(Progress::Ask { action, state })) => {
                    match (self.catalogue.question(&action).await, answers.next()) {
                        (Ok(_), Some(answer)) if call.segment + 1 < SEGMENTS_MAX => {
                            call.resumed = Some(state);
                            call.answer = Some(answer.clone());
                            call.segment += 1;
                            continue;
                        }
                        (Ok(_), _) => seen(Ending::Asks, action.props.to_string()),
                        (Err(fault), _) => CallEnd::Stopped(bad_question(&fault)),
                    }
                }
                Outcome::Returned(Err(error)) => of_error(error),
                other => CallEnd::Stopped(stopped(&other, &self.limits, &called.logs)?),
            };
            return Ok(Performed {
                end,
                usage,
                left: Left::new(buckets.texts()),
                requests,
            });
        }
    }

    /// Returns everything that a call may use here: what it declares, and nothing of the network.
    fn bound(&self, tool: &ToolDefinition, case: &Case, folder: &Path) -> Bound {
        let has = |name: &str| tool.capabilities.iter().any(|there| there == name);
        let writes = has(capability::FILES_WRITE);
        let access = if writes {
            Access::ReadWrite
        } else {
            Access::ReadOnly
        };
        let reads = writes || has(capability::FILES_READ);
        let directories = reads.then(|| DirectoryGrant::whole(folder, &case.folder, access));
        let environment = has(capability::ENV_READ).then(|| case.environment.clone());
        Bound {
            directories: directories.into_iter().collect(),
            network: Vec::new(),
            environment: environment.unwrap_or_default(),
            key_value: buckets(&tool.capabilities),
            secrets: Vec::new(),
            limits: self.limits,
            rulings: rulings(tool),
        }
        .for_effect(tool.effect)
    }
}

/// Returns the buckets that capabilities are about.
fn buckets(capabilities: &[String]) -> Vec<BucketGrant> {
    let mut access: BTreeMap<&str, Access> = BTreeMap::new();
    for (bucket, asked) in capabilities
        .iter()
        .filter_map(|name| capability::bucket(name))
    {
        let known = access.entry(bucket).or_insert(asked);
        *known = (*known).max(asked);
    }
    let granted = access.into_iter();
    granted
        .map(|(bucket, access)| BucketGrant::new(bucket, access))
        .collect()
}

fn put(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

/// Adds what one more segment used.
fn add(all: &mut CallUsage, one: &CallUsage) {
    all.wall_us += one.wall_us;
    all.cpu_ticks += one.cpu_ticks;
    all.host_calls += one.host_calls;
    all.log_bytes_dropped += one.log_bytes_dropped;
    all.memory_bytes_peak = all.memory_bytes_peak.max(one.memory_bytes_peak);
}

/// Returns the requests that a call would have sent.
fn asked_for(called: &Called) -> Vec<String> {
    let hops = called.egress.hops.iter();
    hops.map(|hop| {
        let host = hop.host.as_deref().unwrap_or("a URL that was not accepted");
        format!("{} {host}", hop.method)
    })
    .collect()
}

fn seen(ending: Ending, text: String) -> CallEnd {
    CallEnd::VisibleResult(VisibleResult { ending, text })
}

fn of_error(error: ToolError) -> CallEnd {
    match error {
        ToolError::InvalidArguments(text) => seen(Ending::InvalidArguments, text),
        ToolError::NotFound(text) => seen(Ending::NotFound, text),
        ToolError::Denied => seen(Ending::Denied, String::new()),
        ToolError::Failed(text) => seen(Ending::Failed, text),
        ToolError::RetryLater(after_ms) => seen(Ending::RetryLater, after_ms.to_string()),
    }
}

fn unfit_result(fault: &str) -> Stopped {
    Stopped {
        what: format!("its result is not what it promises: {fault}"),
        fix: "mend the result, or the schema in `results`: a host lets such a call fail".to_owned(),
        stderr: Vec::new(),
    }
}

fn bad_question(fault: &str) -> Stopped {
    Stopped {
        what: format!("a host does not ask its question: {fault}"),
        fix: "mend the question".to_owned(),
        stderr: Vec::new(),
    }
}

fn endless() -> Stopped {
    Stopped {
        what: format!("it is not done after {SEGMENTS_MAX} segments"),
        fix: "end after fewer `later`, or give `answers` in the case".to_owned(),
        stderr: Vec::new(),
    }
}

/// Returns the reason why a guest returned nothing that a host takes. `logs` are the call's.
///
/// # Errors
/// This machine could not do its part.
pub(crate) fn stopped<T: std::fmt::Debug>(
    outcome: &Outcome<T>,
    limits: &GuestLimits,
    logs: &[LogLine],
) -> Result<Stopped, Failure> {
    let (what, fix) = match outcome {
        Outcome::Refused { detail } => (
            format!("a host does not take what it returns: {detail}"),
            "mend that field".to_owned(),
        ),
        Outcome::Trapped { message, .. } => (
            format!("it traps: {}", message.lines().next().unwrap_or_default()),
            "return an error instead: a trap tells the caller nothing".to_owned(),
        ),
        Outcome::OutOfMemory => (
            format!(
                "it needs more than {} bytes of memory",
                limits.memory_bytes_max
            ),
            "use less, or say in its README that `limits.memoryBytesMax` is to be raised"
                .to_owned(),
        ),
        Outcome::OutOfCpu => (
            format!("it computes for more than {} ms", limits.cpu_ms_max),
            "do less at once, or say in its README that `limits.cpuMsMax` is to be raised"
                .to_owned(),
        ),
        Outcome::TimedOut => (
            format!("it takes more than {} ms", limits.wall_ms_max),
            "return `later` instead of waiting, or say that `limits.wallMsMax` is to be raised"
                .to_owned(),
        ),
        Outcome::Returned(_)
        | Outcome::Busy
        | Outcome::TooOften { .. }
        | Outcome::Faulted { .. } => return Err(anyhow!("it could not be run: {outcome:?}").into()),
    };
    let stderr = if matches!(outcome, Outcome::Trapped { .. }) {
        tail(logs, &what)
    } else {
        Vec::new()
    };
    Ok(Stopped { what, fix, stderr })
}

/// Values of buckets as a file of calls has them, by bucket and key.
pub(crate) type BucketTexts = BTreeMap<String, BTreeMap<String, String>>;

/// The content of buckets, by bucket and key.
#[derive(Debug, Clone)]
pub(crate) struct GivenBuckets(BTreeMap<String, BTreeMap<String, Vec<u8>>>);

impl GivenBuckets {
    pub(crate) fn new(texts: &BucketTexts) -> Self {
        let bytes = |entries: &BTreeMap<String, String>| -> BTreeMap<String, Vec<u8>> {
            let entries = entries.iter();
            entries
                .map(|(key, value)| (key.clone(), value.clone().into_bytes()))
                .collect()
        };
        let buckets = texts.iter();
        Self(
            buckets
                .map(|(name, entries)| (name.clone(), bytes(entries)))
                .collect(),
        )
    }

    /// Takes over what a segment has written, as a host does before the next one.
    pub(crate) fn commit(&mut self, written: &Written) {
        for (bucket, entries) in &written.buckets {
            let stored = self.0.entry(bucket.bucket.clone()).or_default();
            for entry in entries {
                match entry.value.bytes() {
                    Some(value) => stored.insert(entry.key.clone(), value.to_vec()),
                    None => stored.remove(&entry.key),
                };
            }
        }
    }

    /// Returns the content as text.
    pub(crate) fn texts(&self) -> BucketTexts {
        let texts = |entries: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, String> {
            let entries = entries.iter();
            entries
                .map(|(key, value)| (key.clone(), String::from_utf8_lossy(value).into_owned()))
                .collect()
        };
        let buckets = self.0.iter();
        buckets
            .map(|(name, entries)| (name.clone(), texts(entries)))
            .collect()
    }

    fn entries(&self, bucket: &BucketGrant) -> impl Iterator<Item = (&String, &Vec<u8>)> {
        self.0.get(&bucket.bucket).into_iter().flatten()
    }

    fn entry(&self, bucket: &BucketGrant, key: &str) -> Option<&Vec<u8>> {
        self.0.get(&bucket.bucket)?.get(key)
    }
}

#[async_trait]
impl Buckets for GivenBuckets {
    async fn hold(&self, _bucket: &BucketGrant) -> Hold {
        Hold::new(())
    }

    async fn value(&self, bucket: &BucketGrant, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self.entry(bucket, key).cloned())
    }

    async fn value_bytes(
        &self,
        bucket: &BucketGrant,
        key: &str,
    ) -> Result<Option<u64>, BucketError> {
        Ok(self.entry(bucket, key).map(|value| value.len() as u64))
    }

    async fn keys(
        &self,
        bucket: &BucketGrant,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, BucketError> {
        let keys = self.entries(bucket).map(|(key, _)| key);
        let keys = keys.filter(|key| after.is_none_or(|after| key.as_str() > after));
        Ok(keys.take(max).cloned().collect())
    }

    async fn size(&self, bucket: &BucketGrant) -> Result<BucketSize, BucketError> {
        let empty = BucketSize::default();
        Ok(self
            .entries(bucket)
            .fold(empty, |size, (key, value)| BucketSize {
                keys: size.keys + 1,
                bytes: size.bytes + (key.len() + value.len()) as u64,
            }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Stopped, buckets, stopped};
    use domain::grant::{Access, BucketGrant, GuestLimits};
    use runtime::{Level, LogLine, Outcome};

    #[test]
    fn capabilities_of_buckets_become_buckets_with_the_most_that_is_asked() {
        let names = [
            "lists.read",
            "lists.write",
            "notes.read",
            "files.read",
            "net.http",
        ];
        let found = buckets(&names.map(str::to_owned));
        let expected = [
            BucketGrant::new("lists", Access::ReadWrite),
            BucketGrant::new("notes", Access::ReadOnly),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_limit_that_was_met_is_told_with_its_number_and_its_key() {
        let limits = GuestLimits::default();
        let logs = [LogLine {
            level: Level::Warn,
            context: "stderr".to_owned(),
            message: "TypeError: text".to_owned(),
        }];
        let reported = |outcome: Outcome<()>| stopped(&outcome, &limits, &logs).unwrap();
        let Stopped { what, fix, stderr } = reported(Outcome::OutOfCpu);
        assert_eq!(stderr, Vec::<String>::new());
        assert!(what.contains("1000 ms") && fix.contains("limits.cpuMsMax"));
        assert!(
            reported(Outcome::OutOfMemory)
                .what
                .contains("67108864 bytes")
        );
        assert!(reported(Outcome::TimedOut).fix.contains("`later`"));
        let trapped = reported(Outcome::Trapped {
            message: "unreachable\nat f".to_owned(),
            backtrace: String::new(),
        });
        assert_eq!(trapped.what, "it traps: unreachable");
        assert_eq!(trapped.stderr, ["TypeError: text"]);
        assert!(stopped(&Outcome::<()>::Busy, &limits, &logs).is_err());
    }
}
