//! The living hierarchy: agents by their paths, what each has to do, to whom a message without an address goes, and where replies go out.

use super::agents::invalid;
use super::connectors::CONNECTOR_KEYS_OF_A_USER_MAX;
use super::once::Once;
use super::sessions::checked_reason;
use super::{Broker, By, Error, Request, Target};
use domain::agent::role::{Right, Role};
use domain::path::{AgentPath, FetchStrategy, Kind as PathKind, PathError, ReplyTarget, Subtree, SubtreeError};
use domain::refusal::{Kind, Refusal};
use domain::residency::{Residency, residency};
use domain::user::UserId;
use serde_json::json;
use store::LivingAgent;

/// Agents that are looked at for one page at a time, and how often: when nearly all do not fit, the page ends before it is full.
const PAGE_READ: usize = 200;
const READS_MAX: usize = 20;
/// Agents that are looked at for one that a message without an address goes to.
const FETCHED_MAX: usize = 1_000;
/// Runs of an agent that one request stops.
const RUNS_STOPPED_MAX: usize = 1_000;

/// Which agents of the hierarchy are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathFilter {
    /// At this path and below it; a path of an agent, or a place such as `/alice` or `/alice/agent`.
    pub under: Option<String>,
    /// At most so many agents below the path, or below the topmost ones without a path.
    pub depth: Option<usize>,
    /// Of this kind.
    pub kind: Option<PathKind>,
}

/// An agent of the hierarchy, and how present it is.
#[derive(Debug, Clone)]
pub struct PathEntry {
    /// The agent with how much it has to do.
    pub living: LivingAgent,
    /// How present it is.
    pub residency: Residency,
}

impl Broker {
    /// A page of the living hierarchy in the order of paths, after one of them; with where the next page begins, if there is one.
    ///
    /// # Errors
    /// `under` is neither a path nor a place where agents live.
    pub async fn paths(
        &self,
        user: &UserId,
        filter: &PathFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<PathEntry>, Option<String>), Error> {
        let under = filter.under.as_deref().map(checked_place).transpose()?.filter(|place| !place.is_empty());
        let base = under.map_or(0, depth_of);
        let (mut entries, mut after) = (Vec::new(), after.unwrap_or_default().to_owned());
        for _ in 0..READS_MAX {
            let found = self.core.store.living_agents(user, under, &after, PAGE_READ, self.core.now()).await?;
            let is_last = found.len() < PAGE_READ;
            let mut rest = found.into_iter();
            while entries.len() < limit {
                let Some(living) = rest.next() else { break };
                after.clone_from(&living.row.agent.path);
                let fits = filter.kind.is_none_or(|kind| living.row.kind == kind)
                    && filter.depth.is_none_or(|depth| depth_of(&living.row.agent.path).saturating_sub(base) <= depth);
                entries.extend((fits && self.may_see(user, &living.row.agent.path)).then(|| self.entry(living)));
            }
            if rest.len() == 0 && is_last {
                return Ok((entries, None));
            }
            if entries.len() == limit {
                break;
            }
        }
        Ok((entries, Some(after)))
    }

    /// The agent that a message without an address goes to: of the topmost ones that the strategy looks for and that the user may talk with,
    /// the one that they used last.
    ///
    /// # Errors
    /// There is none.
    pub async fn fetch(&self, user: &UserId, strategy: FetchStrategy) -> Result<PathEntry, Error> {
        let found = self.core.store.agents_by_last_use(user, FETCHED_MAX, self.core.now()).await?;
        let fits = |living: &LivingAgent| {
            let path = living.row.agent.path.parse::<AgentPath>();
            path.is_ok_and(|path| strategy.matches(&path))
                && living.role.may(Right::Interact)
                && self.may_command(user, &living.row.agent.path).is_ok()
        };
        let fetched = found.into_iter().find(fits).map(|living| self.entry(living));
        fetched.ok_or_else(|| {
            let message = format!("no agent of yours is one that `{}` looks for", strategy.word());
            Refusal::new(Kind::NotFound, "AGENT_NOT_FOUND", message).into()
        })
    }

    /// Where what an agent says goes out: to whom its connector's service knows as the user in its path. Takes a role that may set it up.
    ///
    /// # Errors
    /// There is no such agent, the user may not, or nothing that it says goes out.
    pub async fn reply_target(&self, user: &UserId, target: &Target) -> Result<ReplyTarget, Error> {
        let (row, role) = self.find(user, target).await?;
        role.permits(Right::Configure)?;
        let none = |message: String| Error::from(Refusal::new(Kind::Conflict, "NO_REPLY_TARGET", message));
        let path: AgentPath = row.agent.path.parse().map_err(|error: PathError| none(error.to_string()))?;
        let keys = match path.user() {
            Some(owner) => self.core.store.keys_of_user(owner, CONNECTOR_KEYS_OF_A_USER_MAX).await?,
            None => Vec::new(),
        };
        let keys: Vec<_> = keys.into_iter().map(|row| row.key).collect();
        ReplyTarget::of(&path, &keys).map_err(|error| none(error.to_string()))
    }

    /// Stops every turn of an agent that is in the making, as far as the user sees their sessions, and takes back the words that wait there,
    /// so that there are no successors. How many turns.
    ///
    /// # Errors
    /// There is no such agent; the user may not; an idempotency key of another request.
    pub async fn cancel_all<'a>(&self, by: impl Into<By<'a>>, target: &Target, reason: Option<String>) -> Result<u64, Error> {
        let by = by.into();
        let request = Request::of(by, &json!({ "cancel_all": target.named(), "reason": reason }))?;
        match self.once(request.as_ref(), Box::pin(self.stop_all(by.user, target, reason, request.as_ref()))).await? {
            Once::Now(stopped) | Once::Before(stopped) => Ok(stopped),
        }
    }

    async fn stop_all(&self, user: &UserId, target: &Target, reason: Option<String>, request: Option<&Request>) -> Result<u64, Error> {
        let (row, role) = self.find(user, target).await?;
        self.may_command(user, &row.agent.path)?;
        role.permits(Right::Interact)?;
        let reason = checked_reason(reason, "User cancelled")?;
        let mut stopped = 0;
        for (session, whose) in self.core.store.sessions_running_of(row.agent.id, RUNS_STOPPED_MAX).await? {
            // Nothing could stop what is in quarantine, and nothing goes on there.
            if (role.sees_all_sessions() || whose == *user) && !self.core.quarantine.has(session) {
                // What waits first, so that nothing of it begins a turn.
                self.cancel_waiting(user, &Target::Agent(row.agent.id), session, Some(&reason)).await?;
                stopped += u64::from(self.cancel(user, &Target::Agent(row.agent.id), session, Some(reason.clone())).await?);
            }
        }
        // A turn that begins later is not what was meant.
        self.note(request, &stopped).await?;
        Ok(stopped)
    }

    fn entry(&self, living: LivingAgent) -> PathEntry {
        let residency = residency(living.row.kind, living.work, self.core.limits.patience, self.core.now());
        PathEntry { living, residency }
    }
}

impl PathEntry {
    /// Whether the user who asks is told how much it has to do: a mentee is not told of what its other users do.
    #[must_use]
    pub fn tells_of_work(&self) -> bool {
        self.living.role != Role::Mentee
    }
}

/// A path of an agent, or a place where agents live.
fn checked_place(text: &str) -> Result<&str, Error> {
    let place = text.strip_suffix('/').unwrap_or(text);
    // A path from before paths had their form is looked for all the same: where nobody lives, nothing is found.
    let subtree: Result<Subtree, SubtreeError> = format!("{place}/**").parse();
    match subtree {
        Ok(_) => Ok(place),
        Err(error) => Err(invalid(error.to_string(), "query:under")),
    }
}

/// How many agents an agent has above it, by its path.
fn depth_of(path: &str) -> usize {
    path.parse::<AgentPath>().map_or_else(|_| path.matches("/sub/").count(), |path| path.depth())
}
