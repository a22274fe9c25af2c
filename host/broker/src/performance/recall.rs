//! Searches of an agent's threads and notes, and who reads what they find.

use crate::core::Core;
use crate::performance::result::Performed;
use domain::event::{Event, RunStarted};
use domain::id::{AgentId, Stream};
use domain::memory::{Searched, searched_for};
use domain::message::Part;
use domain::run::settle::Ended;
use domain::step::Failure;
use domain::user::UserId;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use store::{Hit, ReadError, Store};

/// The words of a search, and the most hits.
pub(super) struct LookedFor<'a> {
    pub(super) query: &'a str,
    pub(super) limit: u32,
    /// True if only notes are looked for.
    pub(super) notes: bool,
    /// True if only the user's own sessions are looked in.
    pub(super) own: bool,
}

/// Searches an agent's threads and notes, as far as all who read the result could see them.
///
/// A tool's call names the agent (`of`), and its result is a text; else it is the run's own.
pub(super) async fn recall(
    core: &Core,
    started: &RunStarted,
    looked_for: LookedFor<'_>,
    of: Option<AgentId>,
) -> Performed {
    let agent = of.unwrap_or(started.agent);
    match found(&core.store, started, looked_for, agent).await {
        Ok(hits) => {
            let untrusted = hits.iter().any(|hit| hit.untrusted);
            let hits: Vec<Value> = hits.iter().map(describe).collect();
            let hits = json!({ "hits": hits });
            Performed::ended(if of.is_some() {
                Ended::Gave {
                    parts: vec![Part::text(hits.to_string())],
                    untrusted,
                }
            } else {
                Ended::Recalled { hits, untrusted }
            })
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a recall failed");
            Performed::ended(Ended::Failed(Failure::passing(
                "unavailable",
                "the memory could not be searched",
            )))
        }
    }
}

async fn found(
    store: &Store,
    started: &RunStarted,
    looked_for: LookedFor<'_>,
    agent: AgentId,
) -> Result<Vec<Hit>, ReadError> {
    let LookedFor {
        query,
        limit,
        notes,
        own,
    } = looked_for;
    let place = searched(store, started, agent, own).await?;
    let only = match &place {
        Searched::All => None,
        Searched::Of(user) => Some(user),
        Searched::Nothing => return Ok(Vec::new()),
    };
    if notes {
        store.recall_notes(agent, only, query, limit).await
    } else {
        store.recall(agent, only, query, limit).await
    }
}

/// Returns the sessions of an agent in which a run may find something, by the roles of those who
/// read it.
async fn searched(
    store: &Store,
    started: &RunStarted,
    agent: AgentId,
    own: bool,
) -> Result<Searched, ReadError> {
    let Some(readers) = readers(store, started).await? else {
        return Ok(Searched::Nothing);
    };
    let mut roles = Vec::with_capacity(readers.len() + 1);
    for reader in readers {
        let role = store.role(&reader, agent).await?;
        roles.push((reader, role));
    }
    if own {
        roles.push((started.user_id.clone(), None));
    }
    Ok(searched_for(&roles))
}

/// Returns the users who read what a run finds: the one for whom it works, and the owners of its
/// session and of those of its callers, where the result may be told.
///
/// None if a caller is not on record any more.
async fn readers(
    store: &Store,
    started: &RunStarted,
) -> Result<Option<BTreeSet<UserId>>, ReadError> {
    let mut readers = BTreeSet::from([started.user_id.clone()]);
    let mut session = started.session;
    let mut caller = started.reply_to;
    loop {
        let row = store.session(session).await?;
        let Some(owner) = row.map(|row| row.user_id) else {
            return Ok(None);
        };
        readers.insert(owner);
        let Some(reply_to) = caller else {
            return Ok(Some(readers));
        };
        let first = store.first_of(Stream::Run(reply_to.run)).await?;
        let Some(Event::RunStarted(above)) = first.and_then(|recorded| recorded.event) else {
            return Ok(None);
        };
        session = above.session;
        caller = above.reply_to;
    }
}

/// Returns a hit as the agent is told of it, with the user in whose session it was said. It has an
/// id only if it is a note, and a mark only if it rests on content from outside.
fn describe(hit: &Hit) -> Value {
    let mut described = json!({
        "text": hit.text,
        "turn": hit.turn,
        "session": hit.session,
        "user": hit.user_id,
        "time": hit.time.to_string(),
    });
    if let Some(fields) = described.as_object_mut() {
        let note = hit.note.map(|note| ("note", json!(note)));
        let about = hit.about.as_ref().map(|about| ("about", json!(about)));
        let mark = hit.untrusted.then(|| ("untrusted", true.into()));
        let more = [note, about, mark].into_iter().flatten();
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    described
}
