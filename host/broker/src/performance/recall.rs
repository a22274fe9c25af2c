//! Searches of an agent's threads and notes, limited to hits that all readers of the result may
//! see.

use crate::core::Core;
use crate::performance::result::Performed;
use crate::readers::readers;
use domain::event::RunStarted;
use domain::id::AgentId;
use domain::memory::{Searched, searched_for};
use domain::message::Part;
use domain::run::settle::Ended;
use domain::step::Failure;
use serde_json::{Value, json};
use store::{Hit, ReadError, Store};

/// The words of a search, and the most hits.
pub(super) struct RecallQuery<'a> {
    pub(super) query: &'a str,
    pub(super) limit: u32,
    /// True if only notes are searched.
    pub(super) notes: bool,
    /// True if only the user's own sessions are searched.
    pub(super) own: bool,
}

/// Searches an agent's threads and notes, as far as all who read the result could see them.
///
/// A tool's call names the agent (`of`), and its result is a text; else it is the run's own.
pub(super) async fn recall(
    core: &Core,
    started: &RunStarted,
    recall_query: RecallQuery<'_>,
    of: Option<AgentId>,
) -> Performed {
    let agent = of.unwrap_or(started.agent);
    match found(&core.store, started, recall_query, agent).await {
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
    recall_query: RecallQuery<'_>,
    agent: AgentId,
) -> Result<Vec<Hit>, ReadError> {
    let RecallQuery {
        query,
        limit,
        notes,
        own,
    } = recall_query;
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

/// Returns the sessions of an agent that a run may search, by the roles of those who read it.
async fn searched(
    store: &Store,
    started: &RunStarted,
    agent: AgentId,
    own: bool,
) -> Result<Searched, ReadError> {
    let Some(mut readers) = readers(store, started, agent).await? else {
        return Ok(Searched::Nothing);
    };
    if own {
        readers.push((started.user_id.clone(), None));
    }
    Ok(searched_for(&readers))
}

/// Returns a hit in the form that the agent gets, with the user of its session. It has an id only
/// if it is a note, and a mark only if it depends on content from outside.
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
