//! The users who read a run's messages: their roles decide which data the run may get.

use domain::event::{Event, RunStarted};
use domain::id::{AgentId, Stream};
use domain::role::AgentRole;
use domain::user::UserId;
use std::collections::BTreeSet;
use store::{ReadError, Store};

/// Returns the users who read a run's messages, each with their role with an agent.
///
/// They are the user for whom it works, and the owners of its session and of its callers' sessions,
/// where its result may appear. None if a caller is no longer stored.
pub(crate) async fn readers(
    store: &Store,
    started: &RunStarted,
    agent: AgentId,
) -> Result<Option<Vec<(UserId, Option<AgentRole>)>>, ReadError> {
    let Some(users) = users(store, started).await? else {
        return Ok(None);
    };
    let mut readers = Vec::with_capacity(users.len());
    for user in users {
        let role = store.role(&user, agent).await?;
        readers.push((user, role));
    }
    Ok(Some(readers))
}

async fn users(store: &Store, started: &RunStarted) -> Result<Option<BTreeSet<UserId>>, ReadError> {
    let mut users = BTreeSet::from([started.user_id.clone()]);
    let mut session = started.session;
    let mut caller = started.reply_to;
    loop {
        let row = store.session(session).await?;
        let Some(owner) = row.map(|row| row.user_id) else {
            return Ok(None);
        };
        users.insert(owner);
        let Some(reply_to) = caller else {
            return Ok(Some(users));
        };
        let first = store.first_of(Stream::Run(reply_to.run)).await?;
        let Some(Event::RunStarted(above)) = first.and_then(|recorded| recorded.event) else {
            return Ok(None);
        };
        session = above.session;
        caller = above.reply_to;
    }
}
