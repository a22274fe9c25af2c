//! The steps of a purge: it is recorded as begun, content is erased chunk by chunk, the result is
//! recorded.
//!
//! A crash in between leaves an open purge. The next start, or a repeated request for it, completes
//! it.

mod tries;

use crate::core::Core;
use crate::journal::Context;
use crate::refusals::{busy, run_open, session_not_found};
use crate::shared::{Error, Request};
use domain::event::{Event, PurgeBegun, Purged, Remains};
use domain::grant::Owner;
use domain::id::{AgentId, SessionId, Stream};
use domain::time::Timestamp;
use domain::user::UserId;
use std::collections::BTreeSet;
use std::fmt;
use store::{
    AgentRow, Commit, CommitError, Expected, Guard, PurgeItem, Rewritten, SessionGuard, SessionRow,
};
use tries::{keep_first, retry_busy};

/// Number of sessions or agents whose purge is begun in one commit.
const BEGUN_PER_COMMIT_MAX: usize = 100;

/// Completes the purges that were open when the host stopped, before any other work begins.
///
/// A purge may not complete now: the disk is full or does not respond, a turn is open that it would
/// erase, or a folder cannot be removed. It then stays open, and blocks neither the service nor
/// other purges. Its data are hidden from all users, and a repeated request completes it.
pub(crate) async fn finish_open(core: &Core) {
    if let Err(error) = Box::pin(try_finishing(core)).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the purges that were interrupted could not be looked up"
        );
    }
    rewrite(core).await;
}

/// Tries each of them. One that is stuck keeps no other one open, except that of the agent that it
/// belongs to.
async fn try_finishing(core: &Core) -> Result<(), Error> {
    let Some(_purging) = core.store.begin_purging() else {
        return Ok(());
    };
    let open = retry_busy(|| core.store.open_purges()).await?;
    let open: BTreeSet<Stream> = open.into_iter().collect();
    for stream in &open {
        match finish_interrupted(core, *stream, &open).await {
            Ok(None) => {}
            Ok(Some(purged)) => tracing::info!(
                %stream,
                erased = ?purged.erased,
                "a purge that was interrupted came to its end"
            ),
            Err(error) => tracing::warn!(
                %stream,
                error = &error as &dyn std::error::Error,
                "a purge that was interrupted did not come to its end"
            ),
        }
    }
    Ok(())
}

/// Completes a purge, unless another open one includes it.
async fn finish_interrupted(
    core: &Core,
    stream: Stream,
    open: &BTreeSet<Stream>,
) -> Result<Option<Purged>, Error> {
    let agent = match stream {
        Stream::Agent(agent) => Some(agent),
        Stream::Session(session) => core.store.session(session).await?.map(|row| row.agent),
        Stream::Run(_) | Stream::Trigger(_) | Stream::Connector(_) | Stream::Host => None,
    };
    if let Some(agent) = agent {
        let root = Stream::Agent(core.store.root(agent).await?);
        if root != stream && open.contains(&root) {
            return Ok(None);
        }
    }
    // The purge of an agent completes those of its sessions.
    if let Stream::Agent(agent) = stream {
        begin_agent(core, agent).await?;
    }
    finish(core, stream, None).await.map(Some)
}

/// Removes erased data from the store's log. A failure is logged, and repaired at the next start.
pub(crate) async fn rewrite(core: &Core) {
    match core.store.rewrite_erased().await {
        Ok(Rewritten::Yes) => {}
        Ok(Rewritten::NotYet { reason }) => {
            tracing::warn!(reason, "what was erased may be in the store's files still")
        }
        Err(error) => tracing::warn!(
            error = &error as &dyn std::error::Error,
            "what was erased may be in the store's files still"
        ),
    }
}

/// Records that the purge of a session begins, unless that is already recorded, and the same for
/// the session in which a memory agent reads it.
pub(crate) async fn begin_session(core: &Core, session: SessionId) -> Result<(), Error> {
    let mut rows = Vec::new();
    rows.extend(core.store.session(session).await?);
    // The memory agent has the session's messages in a session of its own.
    if let Some(Stream::Session(reader)) = reader_of(core, session).await? {
        rows.extend(core.store.session(reader).await?);
    }
    let remains: Vec<_> = rows
        .iter()
        .filter(|row| !row.purged)
        .map(session_remains)
        .collect();
    if remains.is_empty() {
        return Ok(());
    }
    begin(core, remains).await
}

/// Returns the stream of the session in which a memory agent reads a session, if one does.
pub(crate) async fn reader_of(core: &Core, session: SessionId) -> Result<Option<Stream>, Error> {
    let reading = core.store.reading_of(session).await?;
    Ok(reading.map(|reading| Stream::Session(reading.reader)))
}

/// Records that an agent is purged from here on, with all agents below it and their sessions.
pub(crate) async fn begin_agent(core: &Core, agent: AgentId) -> Result<(), Error> {
    let tree = core.store.agents_of_tree(agent).await?;
    // Checked before anything is on record that cannot be taken back.
    for row in &tree {
        if !core
            .store
            .sessions_running_of(row.agent.id, 1)
            .await?
            .is_empty()
        {
            return Err(run_open().into());
        }
    }
    // The topmost agent comes first: while its purge is open, all agents and sessions below it are
    // too.
    let mut rows: Vec<&AgentRow> = tree.iter().filter(|row| !row.purged).collect();
    rows.sort_by_key(|row| row.agent.id != agent);
    for some in rows.chunks(BEGUN_PER_COMMIT_MAX) {
        begin(
            core,
            some.iter()
                .map(|row| (row.agent.id, agent_remains(row, agent)))
                .collect(),
        )
        .await?;
    }
    for row in &tree {
        loop {
            let mut sessions = Vec::new();
            for session in core
                .store
                .unpurged_sessions(row.agent.id, BEGUN_PER_COMMIT_MAX)
                .await?
            {
                sessions.extend(
                    core.store
                        .session(session)
                        .await?
                        .map(|row| session_remains(&row)),
                );
            }
            if sessions.is_empty() {
                break;
            }
            begin(core, sessions).await?;
        }
    }
    Ok(())
}

async fn begin(core: &Core, all: Vec<(AgentId, Remains)>) -> Result<(), Error> {
    let now = core.now();
    let mut commit = Commit::new();
    for (agent, remains) in all {
        let session = remains.session();
        commit
            .guards
            .extend(session.map(SessionGuard::NoOpenRun).map(Guard::from));
        let stream = session.map_or(Stream::Agent(agent), Stream::Session);
        let begun = PurgeBegun {
            agent,
            remains,
            begun_by: UserId::local(),
            time: now,
        };
        commit = commit.append(
            stream,
            Expected::Any,
            vec![context(agent, session, now).event(Event::PurgeBegun(begun))],
        );
    }
    match core.store.commit(commit).await {
        Err(CommitError::Conflict(_)) => Err(run_open().into()),
        committed => Ok(committed.map(drop)?),
    }
}

fn context(agent: AgentId, session: Option<SessionId>, now: Timestamp) -> Context {
    Context::by(&UserId::local(), now).about(agent, session, None)
}

fn session_remains(row: &SessionRow) -> (AgentId, Remains) {
    let remains = Remains::Session {
        session: row.id,
        session_type: row.session_type.clone(),
        conversation: row.conversation,
        started_by: row.started_by.clone(),
        user_id: row.user_id.clone(),
        head: row.head,
        created_at: row.created_at,
    };
    (row.agent, remains)
}

fn agent_remains(row: &AgentRow, root: AgentId) -> Remains {
    let agent = &row.agent;
    Remains::Agent {
        definition: agent.definition.clone(),
        agent_type: agent.agent_type.clone(),
        path: agent.path.clone(),
        kind: agent.kind,
        parent: row.parent,
        root,
        owner_user_id: agent.owner_user_id.clone(),
        created_at: row.created_at,
    }
}

/// Completes a purge that was begun. Its result is the answer to a repeated request.
pub(crate) async fn finish(
    core: &Core,
    stream: Stream,
    request: Option<&Request>,
) -> Result<Purged, Error> {
    // Not before the purge has begun: until then the purged sessions may still hand work over.
    core.kept_results.forget_all();
    match stream {
        Stream::Session(session) => purge_session(core, session, request).await,
        Stream::Agent(agent) => purge_agent(core, agent, request).await,
        Stream::Run(_) | Stream::Trigger(_) | Stream::Connector(_) | Stream::Host => {
            Err(busy("only sessions and agents are purged").into())
        }
    }
}

async fn purge_session(
    core: &Core,
    session: SessionId,
    request: Option<&Request>,
) -> Result<Purged, Error> {
    let stream = Stream::Session(session);
    let row = retry_busy(|| core.store.session(session)).await?;
    let row = row.ok_or_else(|| session_not_found(session))?;
    let plan = retry_busy(|| core.store.purge_plan(row.agent, session)).await?;
    for place in plan.places {
        let kept_in = place.session;
        let event =
            context(place.agent, Some(kept_in), core.now()).event(Event::TurnsImported(place));
        let commit = Commit::new().append(Stream::Session(kept_in), Expected::Any, vec![event]);
        retry_busy(|| core.store.commit(commit.clone())).await?;
    }
    for item in plan.items {
        erase(core, stream, item).await?;
    }
    remove_folders(core, Owner::Session, session).await?;
    let mut tally = retry_busy(|| core.store.purge_tally(stream)).await?;
    tally.erased.sessions += 1;
    tally.kept.turns += plan.kept_turns;
    end(core, row.agent, Some(session), tally, request).await
}

async fn purge_agent(
    core: &Core,
    root: AgentId,
    request: Option<&Request>,
) -> Result<Purged, Error> {
    let rows = retry_busy(|| core.store.agents_of_tree(root)).await?;
    let tree: BTreeSet<AgentId> = rows.iter().map(|row| row.agent.id).collect();
    for agent in &tree {
        erase(core, Stream::Agent(root), PurgeItem::AgentBuckets(*agent)).await?;
    }
    // Read once: no other purge runs meanwhile, and the list is as long as the tree is large.
    let open = retry_busy(|| core.store.open_purges()).await?;
    // A stuck purge keeps none of the others' data stored.
    let mut stuck = None;
    for stream in &open {
        if let Stream::Session(session) = *stream
            && retry_busy(|| core.store.session(session))
                .await?
                .is_some_and(|row| tree.contains(&row.agent))
        {
            let purged = purge_session(core, session, None).await;
            keep_first(&mut stuck, *stream, purged.map(drop))?;
        }
    }
    for agent in &tree {
        let removed = remove_folders(core, Owner::Agent, *agent).await;
        keep_first(&mut stuck, Stream::Agent(*agent), removed)?;
    }
    if let Some(error) = stuck {
        return Err(error);
    }
    // The topmost agent comes last: its purge is complete when all others are.
    for stream in open {
        if let Stream::Agent(agent) = stream
            && agent != root
            && tree.contains(&agent)
        {
            erase(core, stream, PurgeItem::Agent(agent)).await?;
            let tally = retry_busy(|| core.store.purge_tally(stream)).await?;
            end(core, agent, None, tally, None).await?;
        }
    }
    erase(core, Stream::Agent(root), PurgeItem::Agent(root)).await?;
    erase(core, Stream::Agent(root), PurgeItem::Blobs).await?;
    let tally = retry_busy(|| core.store.purge_tally(Stream::Agent(root))).await?;
    end(core, root, None, tally, request).await
}

/// Removes the granted folders that a session or an agent has of its own. A purge that cannot do
/// that stays open.
async fn remove_folders(core: &Core, owner: Owner, id: impl fmt::Display) -> Result<(), Error> {
    let removed = core.runtime.remove_folders_of(owner, &id.to_string()).await;
    match removed {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, %owner, %id, "folders were removed with their owner"),
        Err(error) => {
            let message = format!(
                "a granted folder of the {owner} {id} could not be removed: {error}; remove it, \
                 then repeat the same purge"
            );
            return Err(busy(&message).into());
        }
    }
    Ok(())
}

/// Erases a chunk, transaction by transaction.
async fn erase(core: &Core, purge: Stream, item: PurgeItem) -> Result<(), Error> {
    let mut after = Some(0);
    while let Some(from) = after {
        after = retry_busy(|| erase_some(core, purge, &item, from)).await?;
    }
    Ok(())
}

/// Erases as much as fits into one transaction, after the place where the one before ended. Returns
/// where this one ended; none when that is all.
///
/// While blobs are deleted, no commit names stored blobs without including them. Steps wait for one
/// transaction, and then check again which blobs are stored.
async fn erase_some(
    core: &Core,
    purge: Stream,
    item: &PurgeItem,
    after: u64,
) -> Result<Option<u64>, CommitError> {
    let _alone = match item {
        PurgeItem::Blobs => Some(core.naming.write().await),
        _ => None,
    };
    let erased = core.store.erase(purge, item.clone(), after).await;
    if *item == PurgeItem::Blobs {
        core.forget_blobs();
    }
    erased
}

/// Records the result of a purge.
async fn end(
    core: &Core,
    agent: AgentId,
    session: Option<SessionId>,
    tally: store::Tally,
    request: Option<&Request>,
) -> Result<Purged, Error> {
    let now = core.now();
    let purged = Purged {
        agent,
        session,
        purged_by: UserId::local(),
        erased: tally.erased,
        kept: tally.kept,
        usage: tally.usage,
        time: now,
    };
    let stream = session.map_or(Stream::Agent(agent), Stream::Session);
    let event = context(agent, session, now).event(Event::Purged(purged.clone()));
    let mut commit = Commit::new().append(stream, Expected::Any, vec![event]);
    commit.key = request.map(|request| request.answered(&purged));
    retry_busy(|| core.store.commit(commit.clone())).await?;
    Ok(purged)
}
