//! The living hierarchy: the agents by their paths, and their work.
//!
//! It also determines the agent for a message without an address, and where an agent's replies go
//! out.

use super::connectors::CONNECTOR_KEYS_OF_A_USER_MAX;
use super::reason::checked_reason;
use super::{By, Error, Paths, Request, Target};
use crate::boxed::boxed;
use crate::shared::error::invalid;
use domain::error_code::ErrorCode;
use domain::id::SessionId;
use domain::path::{AgentPath, FetchStrategy, PathKind, ReplyTarget, Subtree, SubtreeError};
use domain::refusal::Refusal;
use domain::residency::{Residency, residency};
use domain::role::{AgentRole, Right};
use domain::user::UserId;
use serde_json::json;
use store::LivingAgent;

/// Number of agents per read for one page, and maximum number of reads. If hardly any fits, the
/// page ends before it is full.
const PAGE_READ: usize = 200;
const READS_MAX: usize = 20;
/// Number of agents that are considered for a message without an address.
const FETCHED_MAX: usize = 1_000;
/// Number of an agent's runs that one request stops.
const RUNS_STOPPED_MAX: usize = 1_000;

/// A filter of the hierarchy's agents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathFilter {
    /// The path at which, and below which, they are: of an agent, or a place such as `/alice` or
    /// `/alice/agent`.
    pub under: Option<String>,
    /// The largest number of levels below the path, or without a path below the topmost agents.
    pub depth: Option<usize>,
    /// The kind of the agents.
    pub kind: Option<PathKind>,
}

/// An agent of the hierarchy, with its residency.
#[derive(Debug, Clone)]
pub struct PathEntry {
    /// The agent, with its work.
    pub living: LivingAgent,
    /// Its residency: at work, asleep or dead.
    pub residency: Residency,
}

impl Paths<'_> {
    /// Returns a page of the living hierarchy, ordered by path, after one of them.
    ///
    /// It includes the path after which the next page begins, if there is one.
    ///
    /// # Errors
    /// `under` is neither a path nor a place where agents live.
    #[boxed]
    pub async fn list(
        &self,
        user: &UserId,
        filter: &PathFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<PathEntry>, Option<String>), Error> {
        let under = filter
            .under
            .as_deref()
            .map(checked_place)
            .transpose()?
            .filter(|place| !place.is_empty());
        let base = under.map_or(0, depth_of);
        let mut entries = Vec::new();
        let mut after = after.unwrap_or_default().to_owned();
        for _ in 0..READS_MAX {
            let found = self
                .store()
                .living_agents(user, under, &after, PAGE_READ, self.core.now())
                .await?;
            let is_last = found.len() < PAGE_READ;
            let mut rest = found.into_iter();
            while entries.len() < limit {
                let Some(living) = rest.next() else { break };
                living.row.agent.path.as_str().clone_into(&mut after);
                let fits = filter.kind.is_none_or(|kind| living.row.kind == kind)
                    && filter.depth.is_none_or(|depth| {
                        living.row.agent.path.depth().saturating_sub(base) <= depth
                    });
                entries.extend(
                    (fits && self.access().may_see(user, living.row.agent.path.as_str()))
                        .then(|| self.entry(living)),
                );
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

    /// Returns the agent that a message without an address goes to.
    ///
    /// It is the last used of the topmost agents that the strategy allows and that the user may
    /// talk with.
    ///
    /// # Errors
    /// There is none.
    #[boxed]
    pub async fn fetch(&self, user: &UserId, strategy: FetchStrategy) -> Result<PathEntry, Error> {
        let found = self
            .store()
            .agents_by_last_use(user, FETCHED_MAX, self.core.now())
            .await?;
        let fits = |living: &LivingAgent| {
            let path = &living.row.agent.path;
            strategy.matches(path)
                && living.role.may(Right::Interact)
                && self.access().may_command(user, path.as_str()).is_ok()
        };
        let fetched = found
            .into_iter()
            .find(fits)
            .map(|living| self.entry(living));
        fetched.ok_or_else(|| {
            let message = format!(
                "no agent of yours is one that `{}` looks for",
                strategy.as_str()
            );
            Refusal::new(ErrorCode::AgentNotFound, message).into()
        })
    }

    /// Returns the target of an agent's replies: the user of its path, as the connector's service
    /// knows them.
    ///
    /// Requires a role that may configure the agent.
    ///
    /// # Errors
    /// There is no such agent, the user may not, or none of its replies go out.
    #[boxed]
    pub async fn reply_target(&self, user: &UserId, target: &Target) -> Result<ReplyTarget, Error> {
        let (row, role) = self.agents().find(user, target).await?;
        role.permits(Right::Configure)?;
        let none = |message: String| Error::from(Refusal::new(ErrorCode::NoReplyTarget, message));
        let path = &row.agent.path;
        let keys = match path.user() {
            Some(owner) => {
                self.store()
                    .keys_of_user(owner, CONNECTOR_KEYS_OF_A_USER_MAX)
                    .await?
            }
            None => Vec::new(),
        };
        let keys: Vec<_> = keys.into_iter().map(|row| row.key).collect();
        ReplyTarget::resolve(path, &keys).map_err(|error| none(error.to_string()))
    }

    /// Stops the open turns of an agent in the sessions that the user sees. Returns their number.
    ///
    /// Words that wait in these sessions are taken back first, so that no turn follows. At most
    /// 1,000 turns are stopped; a session in quarantine is passed over.
    ///
    /// # Errors
    /// There is no such agent; the user may not.
    #[boxed]
    pub async fn cancel_all<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        reason: Option<String>,
    ) -> Result<u64, Error> {
        let request = Request::of(
            by,
            &json!({ "cancel_all": target.named(), "reason": reason }),
        )?;
        let act = async {
            let (row, role) = self.agents().find(by.user, target).await?;
            self.access()
                .may_command(by.user, row.agent.path.as_str())?;
            role.permits(Right::Interact)?;
            let reason = checked_reason(reason, "User cancelled")?;
            // All of them: a limit here would count the turns of other users against this one's.
            let running = self
                .store()
                .sessions_running_of(row.agent.id, usize::MAX)
                .await?;
            let within_reach: Vec<SessionId> = running
                .into_iter()
                .filter(|(_, whose)| role.sees_all_sessions() || whose == by.user)
                .map(|(session, _)| session)
                // A session in quarantine does not progress, and has no driver that could stop a
                // turn.
                .filter(|session| !self.core.quarantine.has(*session))
                .take(RUNS_STOPPED_MAX)
                .collect();
            let agent = Target::Agent(row.agent.id);
            let mut stopped = 0;
            for session in within_reach {
                // A session may have been put there while others were being stopped.
                if self.core.quarantine.has(session) {
                    continue;
                }
                // With the waiting words, so that none of them begins a turn.
                let cancelled = self
                    .runs()
                    .cancel_with_waiting(by.user.into(), &agent, session, Some(reason.clone()))
                    .await?;
                stopped += u64::from(cancelled.run);
            }
            // The answer is remembered: a repetition does not stop turns that begin later.
            self.requests().note(request.as_ref(), &stopped).await?;
            Ok(stopped)
        };
        Ok(self.requests().once(request.as_ref(), act).await?.either())
    }

    fn entry(&self, living: LivingAgent) -> PathEntry {
        let residency = residency(
            living.row.kind,
            living.work,
            self.core.limits().patience,
            self.core.now(),
        );
        PathEntry { living, residency }
    }
}

impl PathEntry {
    /// Returns whether the user who asks may see its work. A mentee does not see the work of its
    /// other users.
    #[must_use]
    pub fn tells_of_work(&self) -> bool {
        self.living.role != AgentRole::Mentee
    }
}

/// Checks a path of an agent, or a place where agents live.
fn checked_place(text: &str) -> Result<&str, Error> {
    let place = text.strip_suffix('/').unwrap_or(text);
    // Where no agent lives, none is found.
    let subtree: Result<Subtree, SubtreeError> = format!("{place}/**").parse();
    match subtree {
        Ok(_) => Ok(place),
        Err(error) => Err(invalid(error.to_string(), "query:under")),
    }
}

/// Returns the number of agents above a path, or above a place where agents live.
fn depth_of(place: &str) -> usize {
    place.parse::<AgentPath>().map_or(0, |path| path.depth())
}
