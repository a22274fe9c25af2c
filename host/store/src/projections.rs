//! Projections: tables that follow from the events, one file each.
//!
//! [`project`] runs in the transaction that appends the event, and again when the projections are
//! rebuilt. It reads nothing but the event and other projections, so both give the same rows.
//!
//! A projection writes. The few that have to read rows first do so in functions whose names begin
//! with `needs`.

pub(crate) mod agents;
mod blobs;
mod buckets;
mod connectors;
mod definitions;
mod files;
pub(crate) mod fold;
mod inputs;
mod intake;
mod keys;
mod labels;
mod messages;
mod operations;
pub(crate) mod outbound_messages;
mod outside;
mod pairings;
mod providers;
mod purges;
mod readings;
mod recall;
mod runs;
mod sessions;
mod slot;
mod spawned;
mod tasks;
pub(crate) mod trigger_events;
mod triggers;
mod turns;
pub(crate) mod usage;
mod wakes;

pub(crate) use blobs::{all_named as blobs_named, names_any as names_blobs};
pub(crate) use buckets::scope_name;
pub(crate) use recall::{
    Details as NoteDetails, ROWS_OF_EVENT, body as indexed_body, owner_token,
    position_of as note_position, rows_of as recall_rows_of,
};
pub(crate) use sessions::needs_snippet;

use crate::sql::{self, Sql};
use domain::account;
use domain::budget::Amount;
use domain::event::{
    AgentRenamed, Event, InputAccepted, InputCancelled, InputDead, InputRequeued, InputsDropped,
    MemoryDue, MemoryRead, OperationAttempted, PreferencesTransferred, PreferencesUpdated,
    PromptOverridden, Recorded, RunEnded, RunSettled, RunStarted, RunStepped, SettingsUpdated,
    Source, TurnCommitted, TurnsImported,
};
use domain::id::{InputId, OperationId, RunId, SessionId};
use domain::operation::{CommandCall, Continuation, Operation, Pause, Performer, Settlement};
use domain::queue::WaitKind;
use domain::time::Timestamp;
use domain::usage::{Counted, UsageShares};

/// The tables that follow from the events alone.
pub(crate) const PROJECTIONS: &[&str] = &[
    "agents",
    "agent_users",
    "agent_preferences",
    "access",
    "sessions",
    "items",
    "files",
    "inputs",
    "runs",
    "operations",
    "turns",
    "messages",
    "message_texts",
    "wakes",
    "recall",
    "readings",
    "reading_chunks",
    "blob_references",
    "spawned",
    "buckets",
    "bucket_entries",
    "api_keys",
    "connector_keys",
    "made_definitions",
    "usage",
    "tasks",
    "triggers",
    "trigger_makers",
    "trigger_events",
    "trigger_event_sessions",
    "connectors",
    "inbound_messages",
    "outbound_messages",
    "pairings",
    "provider_troubles",
];

/// Brings every table up to date with one more event. An erased event changes nothing but how far
/// its stream is, and the failures of its trigger. `stream` is the number of its stream.
pub(crate) fn project(sql: &Sql<'_>, recorded: &Recorded, stream: i64) -> sql::Result<()> {
    match &recorded.event {
        Some(event) => {
            changed(sql, recorded, event)?;
            blobs::named(sql, stream, event)?;
        }
        None => triggers::erased(sql, recorded)?,
    }
    agents::seen(sql, recorded)
}

/// Brings the tables of its subject up to date with an event. One line for each kind of event, so
/// that none is forgotten.
fn changed(sql: &Sql<'_>, recorded: &Recorded, event: &Event) -> sql::Result<()> {
    use Event as E;
    let from_outside = || outside::changed(sql, recorded, event);
    match event {
        E::AgentCreated(created) => agents::created(sql, created)?,
        E::PreferencesUpdated(PreferencesUpdated { agent, .. })
        | E::PreferencesTransferred(PreferencesTransferred { agent, .. })
        | E::AgentRenamed(AgentRenamed { agent, .. })
        | E::PromptOverridden(PromptOverridden { agent, .. })
        | E::SettingsUpdated(SettingsUpdated { agent, .. }) => agents::changed(sql, *agent, event)?,
        E::AgentConfigured(it) => agents::changed(sql, it.agent, event)?,
        E::AgentArchived(it) => agents::archived(sql, it.agent, event)?,
        E::UserAssigned(it) => agents::assigned(sql, it.agent, &it.user_id, it.role, event)?,
        E::RoleChanged(it) => agents::assigned(sql, it.agent, &it.user_id, it.role, event)?,
        E::UserUnassigned(it) => agents::unassigned(sql, it.agent, &it.user_id, event)?,
        E::SessionImported(_) | E::SlotTaken(_) | E::SlotCompleted(_) => slot::changed(sql, event)?,
        E::SlotTerminated(_) | E::ExecutionSuspended(_) => slot::changed(sql, event)?,
        E::ActionRequested(_) | E::ExecutionResumed(_) => slot::changed(sql, event)?,
        E::ResponseReceived(_) | E::ActionWithdrawn(_) => slot::changed(sql, event)?,
        E::UiSaved(it) => sessions::saved(sql, it)?,
        E::FileUploaded(it) => files::uploaded(sql, it)?,
        E::ItemRecorded(it) => sessions::recorded(sql, it.session, recorded.position)?,
        E::NoteRemembered(note) => recall::remember(sql, note, recorded.position)?,
        E::NoteForgotten(it) => recall::forget(sql, it)?,
        E::MemoryDue(it) => memory_due(sql, it)?,
        E::MemoryRead(it) => memory_read(sql, it)?,
        E::SessionOpened(opened) => sessions::opened(sql, opened, recorded)?,
        E::SessionRenamed(_) | E::SessionPinned(_) => labels::changed(sql, event)?,
        E::SessionAttributed(_) | E::SessionCleared(_) => labels::changed(sql, event)?,
        E::SessionDeleted(_) | E::QueueConfigured(_) => labels::changed(sql, event)?,
        E::InputCancelled(it) => input_cancelled(sql, it)?,
        E::InputsDropped(it) => inputs_dropped(sql, it)?,
        E::InputAccepted(accepted) => input_accepted(sql, accepted, recorded.position)?,
        E::InputDead(dead) => input_dead(sql, dead, recorded.position)?,
        E::InputRequeued(it) => input_requeued(sql, it)?,
        E::TurnCommitted(committed) => turn_committed(sql, committed, recorded.position)?,
        E::TurnsImported(imported) => turns_imported(sql, imported, recorded.position)?,
        E::PurgeBegun(it) => purges::begun(sql, it, recorded.position)?,
        E::Purged(it) => usage::keep_purged(sql, &it.usage)?,
        E::RunStarted(started) => run_started(sql, started)?,
        E::RunStepped(stepped) => run_stepped(sql, stepped)?,
        E::RunSettled(it) => run_settled(sql, it)?,
        E::OperationContinued(it) => continued(sql, it, recorded)?,
        E::OperationAnswered(answer) => operation_goes_on(sql, answer.operation)?,
        E::OperationAttempted(it) => attempted(sql, it)?,
        E::ApprovalAnswered(answered) => operation_goes_on(sql, answered.operation)?,
        E::OperationStarted(started) => wakes::unpause(sql, started.operation)?,
        E::RunEnded(ended) => run_ended(sql, ended)?,
        E::KeyValueWritten(written) => buckets::written(sql, written, recorded.position)?,
        E::KeyIssued(issued) => keys::issued(sql, issued)?,
        E::KeyRevoked(revoked) => keys::revoked(sql, revoked)?,
        E::DefinitionMade(_) | E::DefinitionRemoved(_) => definitions::changed(sql, event)?,
        E::ConnectorKeyBound(_) | E::ConnectorKeyUnbound(_) => connectors::changed(sql, event)?,
        E::TriggerDefined(_) | E::TriggerRemoved(_) => from_outside()?,
        E::TriggerPaused(_) | E::TriggerResumed(_) => from_outside()?,
        E::TriggerFired(_) | E::TriggerPosted(_) => from_outside()?,
        E::TriggerTroubled(_) | E::TriggerEventFailed(_) => from_outside()?,
        E::TriggerEventAccepted(_) | E::TriggerEventsSkipped(_) => from_outside()?,
        E::ConnectorReceived(_) | E::InboundMessagesSettled(_) => from_outside()?,
        E::ConnectorTroubled(_) | E::PairingSettled(_) => from_outside()?,
        E::ProviderTroubled(_) | E::PairingOffered(_) => from_outside()?,
        E::OutboundMessageQueued(_) | E::OutboundMessageStarted(_) => from_outside()?,
        E::OutboundMessageSettled(_) | E::OutboundMessageRequeued(_) => from_outside()?,
        // Readers look these up as events.
        E::StepFailed(_) | E::RunRecovered(_) | E::RunCut(_) | E::BoundaryDecided(_) => {}
        E::ComponentAdmitted(_) | E::HostRestored(_) | E::OperatorRead(_) => {}
        E::ConfigReloaded(_) | E::ConfigRefused(_) | E::PluginEmitted(_) => {}
    }
    Ok(())
}

fn input_requeued(sql: &Sql<'_>, requeued: &InputRequeued) -> sql::Result<()> {
    let due = inputs::requeued(sql, requeued.input)?;
    wakes::set(sql, &requeued.input, "reminder", requeued.session, due)?;
    wakes::debounce(sql, requeued.session)
}

fn input_dead(sql: &Sql<'_>, dead: &InputDead, position: u64) -> sql::Result<()> {
    inputs::died(sql, dead.input, position)?;
    wakes::remove(sql, &dead.input)?;
    wakes::debounce(sql, dead.session)
}

fn memory_read(sql: &Sql<'_>, it: &MemoryRead) -> sql::Result<()> {
    readings::read(sql, it)?;
    wakes::remove_kind(sql, &it.session, wakes::MEMORY)
}

fn memory_due(sql: &Sql<'_>, it: &MemoryDue) -> sql::Result<()> {
    match it.due {
        Some(due) => wakes::set(sql, &it.session, wakes::MEMORY, it.session, Some(due)),
        None => wakes::remove_kind(sql, &it.session, wakes::MEMORY),
    }
}

fn turn_committed(sql: &Sql<'_>, committed: &TurnCommitted, position: u64) -> sql::Result<()> {
    turns::committed(
        sql,
        &committed.turn,
        committed.session,
        committed.untrusted,
        committed.time,
    )?;
    sessions::moved(sql, committed)?;
    recall::committed(sql, committed, position)
}

fn input_accepted(sql: &Sql<'_>, accepted: &InputAccepted, position: u64) -> sql::Result<()> {
    let due = match &accepted.source {
        Source::Reminder { due, .. } => Some(*due),
        Source::Api
        | Source::Trigger { .. }
        | Source::Connector { .. }
        | Source::Opening
        | Source::Dispatch { .. }
        | Source::LateReply { .. } => None,
    };
    inputs::accepted(sql, accepted, due, position)?;
    if let Source::Dispatch {
        reply_to, depth, ..
    } = &accepted.source
    {
        // Work that the host itself starts for an agent, such as the reading of a chat, has no
        // caller. It does not count against the agents' dispatches, and its end releases none.
        if reply_to.is_some() || *depth > 0 {
            inputs::handed_over(sql, accepted, reply_to.map(|reply_to| reply_to.run))?;
        }
        if let Some(deadline) = accepted.source.deadline() {
            wakes::blocked(sql, accepted.input, accepted.session, deadline)?;
        }
    }
    first_accepted(sql, accepted)?;
    wakes::set(sql, &accepted.input, "reminder", accepted.session, due)?;
    if matches!(accepted.waits_for, Some(WaitKind::Queued(_))) {
        wakes::debounce(sql, accepted.session)?;
    }
    sessions::accepted(sql, accepted)
}

/// Records that a session was begun for its first input, where a run of another session handed the
/// input over.
fn first_accepted(sql: &Sql<'_>, accepted: &InputAccepted) -> sql::Result<()> {
    match &accepted.source {
        Source::Dispatch {
            reply_to: Some(reply_to),
            ..
        } => spawned::handed_over(sql, accepted, reply_to.run),
        _ => Ok(()),
    }
}

/// The first input of a session is this one, or none, now that the one before it was erased.
pub(crate) fn first_again(
    sql: &Sql<'_>,
    session: SessionId,
    first: Option<&InputAccepted>,
) -> sql::Result<()> {
    sql.execute("DELETE FROM spawned WHERE session = ?1", [session])?;
    sessions::first(sql, session, None)?;
    let Some(accepted) = first else { return Ok(()) };
    first_accepted(sql, accepted)?;
    sessions::first(sql, session, Some(accepted.input))
}

/// Records that turns made elsewhere joined the tree, with their messages.
fn turns_imported(sql: &Sql<'_>, imported: &TurnsImported, position: u64) -> sql::Result<()> {
    if imported.erased.is_some() {
        return imported
            .turns
            .iter()
            .try_for_each(|it| turns::put_back(sql, &it.turn, imported.session, it.committed));
    }
    for it in &imported.turns {
        turns::committed(
            sql,
            &it.turn,
            imported.session,
            turns::IMPORTED_IS_UNTRUSTED,
            it.committed,
        )?;
        for message in it.messages.iter().flatten() {
            messages::entered(sql, it.turn.run, message)?;
        }
    }
    recall::imported(sql, imported, position)
}

/// Records that a waiting input no longer waits, and that no turn will process it.
fn input_gone(sql: &Sql<'_>, input: InputId, state: &str) -> sql::Result<()> {
    inputs::gone(sql, input, state)?;
    wakes::remove(sql, &input)
}

fn inputs_dropped(sql: &Sql<'_>, it: &InputsDropped) -> sql::Result<()> {
    for input in &it.inputs {
        input_gone(sql, *input, "dropped")?;
    }
    labels::dropped(sql, it)?;
    wakes::debounce(sql, it.session)
}

fn input_cancelled(sql: &Sql<'_>, it: &InputCancelled) -> sql::Result<()> {
    input_gone(sql, it.input, "cancelled")?;
    wakes::debounce(sql, it.session)
}

fn run_started(sql: &Sql<'_>, started: &RunStarted) -> sql::Result<()> {
    if started.overflow.is_some() {
        labels::overflow_reported(sql, started.session)?;
    }
    runs::started(sql, started)?;
    sessions::running(sql, started)?;
    wakes::debounced(sql, started.session)?;
    wakes::set(sql, &started.run, "run", started.session, started.deadline)?;
    for input in &started.claimed {
        inputs::claimed(sql, *input, started.run)?;
        wakes::remove(sql, input)?;
    }
    match &started.first_step {
        Some(step) => run_stepped(sql, step),
        None => Ok(()),
    }
}

fn run_stepped(sql: &Sql<'_>, stepped: &RunStepped) -> sql::Result<()> {
    let mut used = UsageShares::default();
    settle(sql, &stepped.settled, &mut used)?;
    for input in &stepped.claimed {
        inputs::claimed(sql, *input, stepped.run)?;
        wakes::remove(sql, input)?;
    }
    for message in stepped.heard.iter().chain(&stepped.said) {
        messages::entered(sql, stepped.run, message)?;
    }
    operations_started(sql, stepped)?;
    sessions::listening(sql, stepped.run, stepped.decision.hears())?;
    settle(sql, &stepped.stopped, &mut used)?;
    usage::add(sql, stepped.run, &used)
}

fn run_settled(sql: &Sql<'_>, settled: &RunSettled) -> sql::Result<()> {
    let mut used = UsageShares::default();
    settle(sql, &settled.settled, &mut used)?;
    usage::add(sql, settled.run, &used)
}

fn operations_started(sql: &Sql<'_>, stepped: &RunStepped) -> sql::Result<()> {
    if stepped.started.is_empty() {
        return Ok(());
    }
    let Some(session) = runs::needs_session(sql, stepped.run)? else {
        return Ok(());
    };
    let mut drawn = Amount::default();
    let by = StartedBy {
        run: stepped.run,
        session,
        time: stepped.time,
    };
    for operation in &stepped.started {
        operation_started(sql, operation, by)?;
        drawn = drawn.plus(account::spent_or_reserved(operation));
    }
    runs::draws(sql, stepped.run, drawn, Amount::default())
}

/// The run that starts an operation, its session, and the time.
#[derive(Clone, Copy)]
struct StartedBy {
    run: RunId,
    session: SessionId,
    time: Timestamp,
}

fn operation_started(sql: &Sql<'_>, operation: &Operation, by: StartedBy) -> sql::Result<()> {
    let StartedBy { run, session, time } = by;
    let started = operations::Started {
        waits_for: operation.child(),
        counted: Counted::from_operation(operation),
        asks: operation.approval.is_some()
            || matches!(operation.performer, Performer::Client { .. }),
    };
    operations::started(sql, operation.id, run, session, &started)?;
    tasks::started(sql, operation, run, time)?;
    wakes::set(sql, &operation.id, "deadline", session, operation.deadline)?;
    if operation.approval.is_some() {
        let approval = operation.id.approval();
        operations::started(sql, approval, run, session, &operations::Started::default())?;
    }
    let approved_until = operation.approval.as_ref().map(|approval| approval.until);
    wakes::set(sql, &operation.id, "pause", session, approved_until)?;
    if let Performer::Timer { due } = &operation.performer {
        wakes::set(sql, &operation.id, "timer", session, Some(*due))?;
    }
    Ok(())
}

/// Records the call that a command line makes. It draws on the same run as the line.
fn call_started(sql: &Sql<'_>, line: OperationId, call: &CommandCall) -> sql::Result<()> {
    let Some((run, _)) = operations::needs_drawn(sql, line)? else {
        return Ok(());
    };
    let Some(session) = runs::needs_session(sql, run)? else {
        return Ok(());
    };
    let by = StartedBy {
        run,
        session,
        time: call.time,
    };
    operation_started(sql, &call.started, by)?;
    let drawn = account::spent_or_reserved(&call.started);
    runs::draws(sql, run, drawn, Amount::default())
}

/// Records the amount that another attempt at a model's call draws. It replaces the amount drawn
/// before.
fn attempted(sql: &Sql<'_>, it: &OperationAttempted) -> sql::Result<()> {
    let Some((run, before)) = operations::needs_drawn(sql, it.operation)? else {
        return Ok(());
    };
    operations::attempted(sql, it.operation, it.drawn)?;
    runs::draws(sql, run, it.drawn, before)
}

fn settle(sql: &Sql<'_>, settlements: &[Settlement], used: &mut UsageShares) -> sql::Result<()> {
    for settlement in settlements {
        let settled = operations::settled(sql, settlement.operation)?;
        if let Some(operation) = &settled {
            if operation.waits {
                tasks::settled(sql, settlement)?;
            }
            let (usage, cost_micros) = account::spent(operation.drawn, settlement);
            runs::draws(
                sql,
                operation.run,
                Amount {
                    tokens: usage.total(),
                    calls: 0,
                    cost_micros,
                },
                operation.drawn,
            )?;
        }
        let counted = settled.map_or(Counted::Time, |operation| operation.counted);
        used.settled(&counted, settlement);
        wakes::remove(sql, &settlement.operation)?;
    }
    Ok(())
}

/// Records that an operation no longer waits for a person.
fn operation_goes_on(sql: &Sql<'_>, operation: OperationId) -> sql::Result<()> {
    operations::asks(sql, operation, false)?;
    wakes::unpause(sql, operation)
}

fn continued(sql: &Sql<'_>, continuation: &Continuation, recorded: &Recorded) -> sql::Result<()> {
    usage::worked(sql, recorded, continuation.active_ms)?;
    let operation = continuation.operation;
    wakes::unpause(sql, operation)?;
    let is_asking = matches!(continuation.pause, Pause::Asking { .. });
    operations::asks(sql, operation, is_asking)?;
    if let Some(call) = &continuation.call {
        call_started(sql, operation, call)?;
    }
    let due = match &continuation.pause {
        Pause::Until { due } => Some(*due),
        Pause::Asking { until, .. } => *until,
        Pause::None | Pause::Approving | Pause::Declined => return Ok(()),
    };
    // If it settled before it was resumed, no operation waits for it.
    let question = continuation.question();
    if matches!(continuation.pause, Pause::Asking { .. }) && question != operation {
        operations::asked(sql, question, operation)?;
    }
    wakes::pause(sql, operation, due)
}

fn run_ended(sql: &Sql<'_>, ended: &RunEnded) -> sql::Result<()> {
    let mut used = UsageShares::default();
    settle(sql, &ended.stopped, &mut used)?;
    for message in &ended.said {
        messages::entered(sql, ended.run, message)?;
    }
    // Operations that never settled stay charged with their reserve.
    for (id, operation) in operations::ended(sql, ended.run)? {
        wakes::remove(sql, &id)?;
        if operation.waits {
            tasks::left(sql, id, ended.time)?;
        }
        used.unsettled(&operation.counted, ended.time);
    }
    usage::add(sql, ended.run, &used)?;
    wakes::remove(sql, &ended.run)?;
    inputs::consumed(sql, ended.run)?;
    runs::ended(sql, ended)?;
    sessions::idle(sql, ended.session, ended.run)?;
    wakes::debounce(sql, ended.session)
}
