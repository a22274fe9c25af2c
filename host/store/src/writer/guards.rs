//! Guards, each a look at one row.

use super::apply::Refused;
use super::cache::{Cache, Status};
use crate::commit::{Clash, Conflict, Guard};
use crate::read::accounts::drawn;
use crate::read::dispatches::{in_tree, waits_of};
use crate::read::queue::{overflow_of, seen_of};
use crate::read::routing::chat_with;
use crate::read::trees::shows;
use crate::sql::{Columns, Sql, int};
use crate::user_storage::bytes_of;
use domain::agent::role::{Right, Role};
use domain::dispatch::waits::circle;
use domain::id::{AgentId, InputId, RunId, SessionId, TurnId};
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::params;

/// Passes, or says what was found instead.
pub(super) fn check(sql: &Sql<'_>, cache: &mut Cache, guard: &Guard) -> Result<(), Refused> {
    match found_instead(sql, cache, guard)? {
        None => Ok(()),
        Some(detail) => Err(Refused::Conflict(Conflict {
            clash: Clash::Guard(guard.clone()),
            detail,
        })),
    }
}

fn found_instead(
    sql: &Sql<'_>,
    cache: &mut Cache,
    guard: &Guard,
) -> rusqlite::Result<Option<String>> {
    let found = match guard {
        Guard::NoOpenRun(session) => match open_run(sql, *session)? {
            Some(None) => None,
            Some(Some(run)) => Some(format!("run {run} is open")),
            None => Some("there is no such session".to_owned()),
        },
        Guard::Head {
            session,
            head,
            revision,
        } => moved_head(sql, *session, *head, *revision)?,
        Guard::NothingWaiting {
            session,
            user,
            now,
            except,
        } => waiting(sql, *session, user.as_ref(), *now, except)?,
        Guard::InputWaiting(input) | Guard::InputDead(input) => {
            let wanted = if matches!(guard, Guard::InputDead(_)) {
                "dead"
            } else {
                "waiting"
            };
            let state = sql.row(
                "SELECT state FROM inputs WHERE id = ?1",
                [input.to_string()],
                |row| row.get::<_, String>(0),
            )?;
            unless(state.as_deref() == Some(wanted), || {
                format!("it is {}", state.as_deref().unwrap_or("not there"))
            })
        }
        Guard::OperationOpen { run, operation } => {
            let open = sql.exists(
                "SELECT 1 FROM operations WHERE id = ?1 AND run = ?2",
                params![operation.0.0, run.to_string()],
            )?;
            unless(open, || "it is not open".to_owned())
        }
        Guard::RunOpen(run) => {
            let open = sql.exists(
                "SELECT 1 FROM runs WHERE id = ?1 AND outcome IS NULL",
                [run.to_string()],
            )?;
            unless(open, || "it is not open".to_owned())
        }
        Guard::SlotFor { agent, session } => taken_slot(sql, *agent, *session)?,
        Guard::AgentActive(agent) => {
            let active = sql.exists(
                "SELECT 1 FROM agents WHERE id = ?1 AND active",
                [agent.to_string()],
            )?;
            unless(active, || "it is archived, or not there".to_owned())
        }
        Guard::SessionOpen(session) => {
            let status = cache
                .standing(sql, *session)?
                .map(|standing| standing.status);
            unless(status == Some(Status::Open), || {
                format!("it is {}", status.map_or("not there", Status::as_str))
            })
        }
        Guard::SessionThere(session) => {
            let text = "SELECT 1 FROM sessions JOIN agents ON agents.id = sessions.agent WHERE \
                        sessions.id = ?1 AND \
                        sessions.status != 'deleted' AND agents.active";
            unless(sql.exists(text, [session.to_string()])?, || {
                "it is not there".to_owned()
            })
        }
        Guard::WaitingAtMost { session, max } => {
            let waiting = cache
                .standing(sql, *session)?
                .map_or(0, |standing| standing.waiting);
            unless(waiting <= *max, || format!("{waiting} wait"))
        }
        Guard::FileAbsent {
            session,
            digest,
            name,
        } => {
            let text = "SELECT 1 FROM files WHERE session = ?1 AND digest = ?2 AND name = ?3";
            let there = sql.exists(text, params![session.to_string(), digest.0, name])?;
            unless(!there, || "it is there".to_owned())
        }
        Guard::FilesAtMost {
            session,
            files,
            bytes,
        } => too_many_files(sql, *session, *files, *bytes)?,
        Guard::TreeDispatchesAtMost { .. }
        | Guard::AccountsHave { .. }
        | Guard::RunsAtMost { .. } => too_much(sql, guard)?,
        Guard::Role { agent, user, right } => forbids(cache.role(sql, *agent, user)?, *right),
        Guard::PathFree(path) => sql
            .row(
                "SELECT id FROM agents WHERE path = ?1 AND active = 1",
                [path],
                |row| row.get::<_, String>(0),
            )?
            .map(|agent| format!("agent {agent} is there")),
        Guard::KeyNotRevoked(key) => {
            let there = sql.exists(
                "SELECT 1 FROM api_keys WHERE id = ?1 AND revoked_at IS NULL",
                [key.as_str()],
            )?;
            unless(there, || "it was revoked".to_owned())
        }
        Guard::SubCount { agent, count } => other_count(sql, *agent, *count)?,
        Guard::MayWait {
            session,
            for_session,
        } => closed_circle(sql, *session, *for_session)?,
        Guard::QueueUnchanged { .. } | Guard::Untold { .. } => other_queue(sql, guard)?,
        Guard::ConnectorKeyOf { .. } | Guard::ConnectorKeysAtMost { .. } => other_keys(sql, guard)?,
        Guard::StoredBelow { .. } | Guard::SessionsOpenedBelow { .. } => {
            too_much_of(sql, cache, guard)?
        }
        Guard::NoChat { of, with } => {
            chat_with(sql, of, with)?.map(|session| format!("the chat {session} is there"))
        }
        Guard::SessionShows { session, turn } => unless(shows(sql, *session, *turn)?, || {
            "it does not show that turn".to_owned()
        }),
    };
    Ok(found)
}

/// Describes the number of agents that an agent has spawned, when it is not the expected one.
fn other_count(sql: &Sql<'_>, agent: AgentId, count: u64) -> rusqlite::Result<Option<String>> {
    let subs = sql.row(
        "SELECT sub_count FROM agents WHERE id = ?1",
        [agent.to_string()],
        |row| row.uint(0),
    )?;
    Ok(unless(subs == Some(count), || {
        subs.map_or("there is no such agent".to_owned(), |subs| {
            format!("it has {subs}")
        })
    }))
}

/// Describes the circle of sessions that would wait for each other if one began to
/// wait for another.
fn closed_circle(
    sql: &Sql<'_>,
    session: SessionId,
    for_session: SessionId,
) -> rusqlite::Result<Option<String>> {
    let circle = circle(&waits_of(sql, for_session)?, session, for_session);
    Ok(circle.map(|sessions| format!("{} sessions would wait for each other", sessions.len())))
}

/// Describes how a session's queue differs from what the guard expects.
fn other_queue(sql: &Sql<'_>, guard: &Guard) -> rusqlite::Result<Option<String>> {
    Ok(match guard {
        Guard::QueueUnchanged { session, seen } => {
            unless(seen_of(sql, *session)?.as_ref() == Some(&**seen), || {
                "what waits in it has changed".to_owned()
            })
        }
        Guard::Untold { session, notice } => {
            let there = overflow_of(sql, *session)?.and_then(|overflow| overflow.notice());
            unless(there == *notice, || {
                "something else is to be told".to_owned()
            })
        }
        _ => None,
    })
}

/// Describes by how much agents that work together exceed a limit on what they hand over, draw or
/// begin.
fn too_much(sql: &Sql<'_>, guard: &Guard) -> rusqlite::Result<Option<String>> {
    Ok(match guard {
        Guard::TreeDispatchesAtMost { tree, max } => {
            let open = in_tree(sql, *tree)?;
            unless(open <= *max, || format!("{open} have not ended"))
        }
        Guard::AccountsHave {
            run,
            accounts,
            drawn: own,
            more,
        } => accounts.lacking(&drawn(sql, accounts, Some(*run))?.others, *own, *more),
        Guard::RunsAtMost { accounts, max } => {
            let begun = drawn(sql, accounts, None)?.runs;
            unless(begun <= *max, || format!("{begun} have begun"))
        }
        _ => None,
    })
}

/// Describes how connector keys differ from what the guard expects.
fn other_keys(sql: &Sql<'_>, guard: &Guard) -> rusqlite::Result<Option<String>> {
    Ok(match guard {
        Guard::ConnectorKeyOf { key, user } => {
            let text = "SELECT user_id FROM connector_keys WHERE key = ?1";
            let found = sql.row(text, [key.to_string()], |row| row.get::<_, String>(0))?;
            let holds = found.as_deref() == user.as_ref().map(UserId::as_str);
            unless(holds, || {
                found.map_or("it stands for nobody".to_owned(), |user| {
                    format!("it stands for {user}")
                })
            })
        }
        Guard::ConnectorKeysAtMost { user, max } => {
            let text = "SELECT count(*) FROM connector_keys WHERE user_id = ?1";
            let keys = sql
                .row(text, [user.as_str()], |row| row.uint(0))?
                .unwrap_or(0);
            unless(keys <= *max, || format!("they have {keys}"))
        }
        _ => None,
    })
}

/// Describes how much of the host a user has taken, when that is as much as they may.
fn too_much_of(sql: &Sql<'_>, cache: &Cache, guard: &Guard) -> rusqlite::Result<Option<String>> {
    Ok(match guard {
        Guard::StoredBelow { user, bytes } => {
            let stored = bytes_of(sql, user)? + cache.brought(user);
            unless(stored < *bytes, || format!("they have {stored} bytes"))
        }
        Guard::SessionsOpenedBelow {
            user,
            after,
            until,
            max,
        } => {
            let text = "SELECT count(*) FROM sessions WHERE user_id = ?1 AND opened_at > ?2 AND \
                        opened_at <= ?3 AND started_by = 'user:' || ?1";
            let opened = sql
                .row(
                    text,
                    params![user.as_str(), int(after.0), int(until.0)],
                    |row| row.uint(0),
                )?
                .unwrap_or(0);
            unless(opened < *max, || format!("they have opened {opened}"))
        }
        _ => None,
    })
}

fn unless(holds: bool, detail: impl FnOnce() -> String) -> Option<String> {
    if holds { None } else { Some(detail()) }
}

/// The run of a session that is open, if there is the session.
fn open_run(sql: &Sql<'_>, session: SessionId) -> rusqlite::Result<Option<Option<RunId>>> {
    sql.row(
        "SELECT open_run FROM sessions WHERE id = ?1",
        [session.to_string()],
        |row| row.id_opt(0),
    )
}

/// An input of a session, and of a user, whose time has come, and that is not one of these.
fn waiting(
    sql: &Sql<'_>,
    session: SessionId,
    user: Option<&UserId>,
    now: Timestamp,
    except: &[InputId],
) -> rusqlite::Result<Option<String>> {
    let text = "SELECT id FROM inputs WHERE session_number = (SELECT number FROM sessions WHERE id \
                = ?1) AND state = 'waiting' AND words \
                AND (due IS NULL OR due <= ?2) AND (waits_for IS NULL OR json_extract(waits_for, \
                '$.kind') = 'steer') AND (?4 IS NULL OR user_id = ?4) ORDER BY position LIMIT ?3";
    let (now, most, user) = (
        int(now.0),
        int(except.len() as u64 + 1),
        user.map(UserId::as_str),
    );
    let few = sql.rows(text, params![session.to_string(), now, most, user], |row| {
        row.get::<_, String>(0)
    })?;
    let other = few
        .into_iter()
        .find(|input| !except.iter().any(|claimed| claimed.to_string() == *input));
    Ok(other.map(|input| format!("input {input} waits")))
}

/// Describes the files of a session, when there are more than the limits allow.
fn too_many_files(
    sql: &Sql<'_>,
    session: SessionId,
    files: u64,
    bytes: u64,
) -> rusqlite::Result<Option<String>> {
    let text = "SELECT count(*), coalesce(sum(bytes), 0) FROM files WHERE session = ?1";
    let found = sql
        .row(text, [session.to_string()], |row| {
            Ok((row.uint(0)?, row.uint(1)?))
        })?
        .unwrap_or((0, 0));
    Ok(unless(found.0 <= files && found.1 <= bytes, || {
        format!("it has {} of {} bytes", found.0, found.1)
    }))
}

/// Explains why a user in a role may not do something with an agent, if so.
fn forbids(role: Option<Role>, right: Right) -> Option<String> {
    let allows = role.is_some_and(|role| role.may(right));
    unless(allows, || {
        role.map_or("they are not assigned to it".to_owned(), |role| {
            format!("they are {}", role.as_str())
        })
    })
}

/// Explains why a slot is not available to a session, if so.
fn taken_slot(
    sql: &Sql<'_>,
    agent: AgentId,
    session: SessionId,
) -> rusqlite::Result<Option<String>> {
    let slot = sql.row(
        "SELECT slot FROM agents WHERE id = ?1",
        [agent.to_string()],
        |row| row.id_opt::<SessionId>(0),
    )?;
    Ok(match slot {
        Some(None) => None,
        Some(Some(holder)) if holder == session => None,
        Some(Some(holder)) => Some(format!("session {holder} holds it")),
        None => Some("there is no such agent".to_owned()),
    })
}

fn moved_head(
    sql: &Sql<'_>,
    session: SessionId,
    head: Option<TurnId>,
    revision: u64,
) -> rusqlite::Result<Option<String>> {
    let found = sql.row(
        "SELECT head, revision FROM sessions WHERE id = ?1",
        [session.to_string()],
        |row| Ok((row.digest_opt(0)?.map(TurnId), row.uint(1)?)),
    )?;
    Ok(match found {
        Some(found) if found == (head, revision) => None,
        Some((found, revision)) => Some(format!("its head is {found:?} at revision {revision}")),
        None => Some("there is no such session".to_owned()),
    })
}
