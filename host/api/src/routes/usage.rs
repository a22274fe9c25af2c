//! Usage: what models and tools were asked, and what that cost, a page at a time.

use crate::caller::Caller;
use crate::codes::{self, Refused};
use crate::input::{Params, next_after, page_query, queried_agent, read_query};
use crate::problem::{Problem, RequestPart};
use crate::state::Api;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::error_code::ErrorCode;
use domain::id::{AgentId, SessionId};
use domain::usage::{Day, UsageSum};
use domain::user::{Scope, UserId};
use serde::Serialize;
use store::{UsageBy, UsageFilter, UsageRow};

/// Days that are summed unless others are asked for.
const DAYS: u32 = 30;

/// The keys by which usage is summed, by their names.
const KEYS: [(&str, UsageBy); 5] = [
    ("session", UsageBy::Session),
    ("agent", UsageBy::Agent),
    ("user", UsageBy::User),
    ("day", UsageBy::Day),
    ("model", UsageBy::Model),
];

page_query! {
    /// Query for usage. Every filter narrows it down.
    pub(super) struct Page: String, 100 of 1_000 {
        /// The key of the sums: `session`, `agent`, `user`, `day` or `model`; `day` by default.
        by: Option<String>,
        /// The first day, such as `2026-11-01`, in UTC; 29 days before the last one by default.
        from: Option<String>,
        /// The last day, in UTC; today by default.
        to: Option<String>,
        /// Only of this agent: a UUID or a path.
        agent: Option<String>,
        /// Only of this session.
        #[param(value_type = Option<SessionId>)]
        session: Option<String>,
        /// Only of this user. Only an administrator sees what others than themselves used; without
        /// this filter, that of all.
        user: Option<String>,
    }
}

/// Usage under one key.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct UsageLine {
    /// The session, agent or user, the day, or the provider's name of the model. None for sessions,
    /// agents and users that were purged, and for what belongs to no model, such as tools.
    key: Option<String>,
    /// The agent's path, where the key is an agent or a session.
    agent_path: Option<String>,
    /// The sums.
    #[serde(flatten)]
    sums: UsageSums,
}

/// Sums of what was used. What an operation used counts when it settles, on the day in UTC on which
/// that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(super) struct UsageSums {
    /// Calls of models, whatever came of them.
    model_calls: u64,
    /// Requests to providers that these calls took.
    attempts: u64,
    /// Requests whose cost is not known, because their model has no price.
    unpriced_attempts: u64,
    /// Tokens of prompts, cached ones included, as the providers reported them.
    input_tokens: u64,
    /// Tokens of replies.
    output_tokens: u64,
    /// Tokens of prompts that were read from a cache.
    cached_tokens: u64,
    /// Cost in millionths of the currency of the configured prices.
    cost_micros: u64,
    /// Calls of tools and of other agents.
    tool_calls: u64,
    /// Milliseconds in which a model or a tool was at work.
    active_ms: u64,
    /// Tokens reserved for requests whose usage no provider reported. Limits count them; they are
    /// no part of the sums above.
    reserved_tokens: u64,
    /// The cost of these tokens.
    reserved_cost_micros: u64,
}

impl From<UsageSum> for UsageSums {
    fn from(sum: UsageSum) -> Self {
        Self {
            model_calls: sum.model_calls,
            attempts: sum.attempts,
            unpriced_attempts: sum.unpriced_attempts,
            input_tokens: sum.input_tokens,
            output_tokens: sum.output_tokens,
            cached_tokens: sum.cached_tokens,
            cost_micros: sum.cost_micros,
            tool_calls: sum.tool_calls,
            active_ms: sum.active_ms,
            reserved_tokens: sum.reserved_tokens,
            reserved_cost_micros: sum.reserved_cost_micros,
        }
    }
}

/// One page of usage.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct UsageList {
    /// The key of the sums.
    by: &'static str,
    /// The first day, in UTC.
    from: String,
    /// The last day, in UTC.
    to: String,
    /// The sums by key, in the order of the keys.
    usage: Vec<UsageLine>,
    /// The sums of all pages together.
    total: UsageSums,
    /// The `after` of the next page; none on the last.
    next_after: Option<String>,
}

/// Sums what was used and what it cost, by session, agent, user, day or model.
///
/// You see your own usage: that of turns that work for you. With the scope `admin` you see that of
/// all. Days are in UTC. When turns are purged, their sums stay, and not whose they were.
#[utoipa::path(
    get, path = "/api/usage", tag = "usage",
    operation_id = "listUsage",
    security(("token" = ["read"]), ("token" = ["admin"])),
    params(Page),
    responses((status = 200, description = "A page.", body = UsageList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<axum::Json<UsageList>, Refused<codes::Agent>> {
    let broker = api.broker()?;
    let (name, by) = page.by()?;
    let agent = queried_agent(broker, &caller, page.agent.as_deref()).await?;
    let today = Day::from_time(api.access().clock().now());
    let filter = page.filter(&caller, agent, today)?;
    let limit = page.limit()?;
    let after = page
        .after
        .as_deref()
        .map(|after| read_after(name, after))
        .transpose()?;
    let (total, mut rows) = broker
        .models()
        .usage(by, filter.clone(), after, limit.saturating_add(1))
        .await?;
    let next_after = next_after(&mut rows, limit, |row| write_after(name, &row.key));
    Ok(axum::Json(UsageList {
        by: name,
        from: filter.from.to_string(),
        to: filter.to.to_string(),
        usage: rows.into_iter().map(line).collect(),
        total: total.into(),
        next_after,
    }))
}

fn line(row: UsageRow) -> UsageLine {
    UsageLine {
        key: (!row.key.is_empty()).then_some(row.key),
        agent_path: row.agent_path,
        sums: row.sum.into(),
    }
}

impl Page {
    fn by(&self) -> Result<(&'static str, UsageBy), Problem> {
        let asked = self.by.as_deref().unwrap_or("day");
        KEYS.into_iter()
            .find(|(name, _)| *name == asked)
            .ok_or_else(|| {
                let known = KEYS.map(|(name, _)| name).join(", ");
                let detail = format!("by: `{asked}` is no key of usage; known are {known}");
                Problem::invalid_query("by", detail)
            })
    }

    fn filter(
        &self,
        caller: &Caller,
        agent: Option<AgentId>,
        today: Day,
    ) -> Result<UsageFilter, Problem> {
        let to = read_query("to", self.to.as_deref())?.unwrap_or(today);
        let from = read_query("from", self.from.as_deref())?.unwrap_or(to.minus(DAYS - 1));
        if from > to {
            let detail = format!("from: {from} is after `to`, which is {to}");
            return Err(Problem::invalid_query("from", detail));
        }
        let user: Option<UserId> = read_query("user", self.user.as_deref())?;
        let is_operator = caller.scopes.contains(&Scope::Admin);
        let user = match user {
            Some(other) if !is_operator && other != caller.user => {
                let detail = format!(
                    "only the scope `{}` sees the usage of others than `{}`",
                    Scope::Admin.as_str(),
                    caller.user
                );
                let problem = Problem::new(ErrorCode::ScopeMissing, detail);
                return Err(problem.at(RequestPart::Query("user")));
            }
            None if !is_operator => Some(caller.user.clone()),
            asked => asked,
        };
        Ok(UsageFilter {
            from,
            to,
            user,
            agent,
            session: read_query("session", self.session.as_deref())?,
        })
    }
}

/// The token of a row: it is of one kind of key and of no other.
fn write_after(by: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{by}:{key}"))
}

fn read_after(by: &str, token: &str) -> Result<String, Problem> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let key = text.strip_prefix(by)?.strip_prefix(':')?;
        let is_key = by != "day" || key.parse::<Day>().is_ok();
        is_key.then(|| key.to_owned())
    };
    read().ok_or_else(|| {
        let detail = "after: this is not the `next_after` of a page of this list; leave it out to \
                      begin with the first page";
        Problem::invalid_query("after", detail)
    })
}
