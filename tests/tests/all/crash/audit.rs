//! The rules for a stopped host's data, given what its client knows.

use super::super::account::{Account, End, check_places};
use super::client::{Fate, Ledger};
use super::{EVENTS_MAX, open};
use agent_host_tests::process::Folder;
use anyhow::{Context, Result, ensure};
use domain::event::Recorded;
use domain::id::InputId;
use domain::turn::TurnEnd;
use std::collections::BTreeMap;
use store::EventFilter;

/// Checks everything, and returns of how many calls nothing is known.
pub(super) async fn audit(folder: &Folder, ledger: &Ledger) -> Result<usize> {
    let verified = folder.run(&["verify"]).await;
    ensure!(
        verified.status.success(),
        "verify: {}",
        String::from_utf8_lossy(&verified.stderr)
    );
    let store = open(folder).await;
    let events = store.events(0, EventFilter::default(), EVENTS_MAX).await?;
    store.close().await;
    check_places(&events)?;
    let account = Account::of(&events)?;
    account.check_inputs()?;
    account.check_runs()?;
    account.check_replies()?;
    account.check_effects(&folder.effects())?;
    check_acknowledged(&account, ledger)?;
    check_fates(&account, ledger)?;
    check_seen(&events, ledger)?;
    check_begun(&events, ledger)?;
    account.check_unknown()
}

/// Checks that everything acknowledged is there, and nothing else.
fn check_acknowledged(account: &Account, ledger: &Ledger) -> Result<()> {
    for sent in &ledger.sent {
        let input: InputId = sent
            .input
            .as_ref()
            .with_context(|| format!("{} was never acknowledged", sent.key))?
            .parse()?;
        ensure!(
            account.accepted.contains_key(&input),
            "{} is not there",
            sent.key
        );
    }
    let there = account.accepted.len();
    let sent = ledger.sent.len();
    ensure!(
        there == sent,
        "{there} messages were accepted, {sent} were sent"
    );
    for call in &ledger.answered {
        let answers = account.answered.get(&call.parse()?).copied().unwrap_or(0);
        ensure!(answers == 1, "the question {call} has {answers} answers");
    }
    for (input, times) in &ledger.requeued {
        let requeued = account.requeued.get(&input.parse()?).copied().unwrap_or(0);
        ensure!(
            requeued >= *times,
            "the letter {input} was requeued {requeued} times and not {times}"
        );
    }
    for lesson in ledger.lessons.keys() {
        let slot = account
            .slots
            .get(&lesson.parse()?)
            .copied()
            .unwrap_or_default();
        ensure!(
            slot == (1, 1),
            "the session {lesson} took its slot {} times and left it {} times",
            slot.0,
            slot.1
        );
    }
    ensure!(
        account.slots.len() == ledger.lessons.len(),
        "structured sessions that nobody knows: {:?}",
        account.slots
    );
    Ok(())
}

/// Checks that there is one chat for each key under which a message began one, with its agent.
fn check_begun(events: &[Recorded], ledger: &Ledger) -> Result<()> {
    if ledger.begun.is_empty() {
        return Ok(());
    }
    let of = |kind: &str| events.iter().filter(|event| event.kind == kind).count();
    let opened: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "session.opened.v1")
        .filter_map(|event| event.subject.session)
        .collect();
    ensure!(
        opened
            .iter()
            .all(|session| ledger.begun.contains(&session.to_string())),
        "chats that nobody knows: {opened:?}"
    );
    let sessions = opened.len();
    let agents = of("agent.created.v1");
    let begun = ledger.begun.len();
    ensure!(
        (sessions, agents) == (begun, begun),
        "{sessions} sessions and {agents} agents were begun by {begun} messages"
    );
    Ok(())
}

/// Checks that every turn ended as it should, in spite of interruptions.
fn check_fates(account: &Account, ledger: &Ledger) -> Result<()> {
    let mut fates: BTreeMap<InputId, Fate> = BTreeMap::new();
    for sent in &ledger.sent {
        fates.extend(
            sent.input
                .as_ref()
                .and_then(|input| Some((input.parse().ok()?, sent.fate))),
        );
    }
    for (input, session) in &account.openings {
        fates.extend(
            ledger
                .lessons
                .get(&session.to_string())
                .map(|fate| (*input, *fate)),
        );
    }
    for (input, handed) in &account.handed {
        fates.extend(
            ledger
                .handed
                .iter()
                .find(|(text, _)| *text == handed.text)
                .map(|(_, fate)| (*input, *fate)),
        );
    }
    for (run, first) in &account.started {
        // What other agents are handed ends with a reply.
        let fate = first
            .first()
            .and_then(|input| fates.get(input))
            .copied()
            .unwrap_or(Fate::Replied);
        let end = account
            .ended
            .get(run)
            .and_then(|ends| ends.first())
            .context("a run that ended")?;
        ensure!(
            is(fate, end),
            "run {run} should have been {fate:?} and is {end:?}"
        );
        ensure!(
            fate == Fate::Dead || !account.failed_steps.contains(run),
            "a step of run {run} failed"
        );
    }
    for (input, deaths) in &account.dead {
        ensure!(
            fates.get(input) == Some(&Fate::Dead),
            "the input {input} was put aside"
        );
        let requeued = account.requeued.get(input).copied().unwrap_or(0);
        ensure!(
            *deaths == requeued + 1,
            "the input {input} was put aside {deaths} times and requeued {requeued} times"
        );
    }
    Ok(())
}

fn is(fate: Fate, ended: &End) -> bool {
    let (end, code) = ended;
    match fate {
        Fate::Replied => *end == TurnEnd::Replied,
        Fate::Completed => *end == TurnEnd::Completed,
        Fate::Aborted => *end == TurnEnd::Aborted,
        Fate::Limited => *end == TurnEnd::Failed && code.as_deref() == Some("limit-reached"),
        Fate::Dead => *end == TurnEnd::Failed && code.as_deref() == Some("step-failed"),
    }
}

/// Checks that every watcher saw every event of the agent once and in order, from the first one on.
fn check_seen(events: &[Recorded], ledger: &Ledger) -> Result<()> {
    for (agent, seen) in &ledger.seen {
        let agent = agent.parse()?;
        let there: Vec<u64> = events
            .iter()
            .filter(|event| event.subject.agent == Some(agent))
            .map(|event| event.position)
            .collect();
        ensure!(
            !seen.is_empty() && there.starts_with(seen),
            "{seen:?} was shown of {there:?}"
        );
    }
    Ok(())
}
