//! Holding the ledger of the clients against the events of a host that has stopped.

use super::super::account::{Account, check_places};
use super::clients::Ledger;
use agent_host_tests::process::Folder;
use anyhow::{Context, Result, ensure};
use domain::event::{Event, Recorded};
use domain::id::{InputId, SessionId};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{EventFilter, Store};

/// More events than an hour makes.
const EVENTS_MAX: usize = 10_000_000;

/// An hour's events, on a machine that does other things too.
const VERIFIED_IN: Duration = Duration::from_mins(20);

/// Checks that everything is as the ledger says. Returns a summary in figures.
pub(super) async fn judge(folder: &Folder, ledger: &Ledger) -> Result<String> {
    let verified = Folder::run_within(VERIFIED_IN, folder.program(&["verify"])).await;
    ensure!(
        verified.status.success(),
        "verify: {}",
        String::from_utf8_lossy(&verified.stderr)
    );
    // SQLite does not find its way into the namespace of the small disk.
    let copied = tempfile::tempdir()?;
    for file in std::fs::read_dir(folder.data())?
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with("store.db"))
    {
        std::fs::copy(file.path(), copied.path().join(file.file_name()))?;
    }
    let data = copied.path().to_owned();
    let store = tokio::task::spawn_blocking(move || Store::open(&data, store::Options::default()))
        .await??;
    let events = store.events(0, EventFilter::default(), EVENTS_MAX).await?;
    store.close().await;
    check_places(&events)?;
    let left: Vec<Recorded> = events
        .into_iter()
        .filter(|event| event.event.is_some())
        .collect();
    let account = Account::of(&left)?;
    account.check_inputs()?;
    account.check_runs()?;
    check_effects(&account, &folder.effects())?;
    check_inputs(&account, ledger)?;
    check_sessions(&left, ledger)?;
    let unknown = account.check_unknown()?;
    Ok(format!(
        "{} events, {} runs, {} inputs put aside, {unknown} calls of which nothing is known",
        left.len(),
        account.started.len(),
        account.dead.len(),
    ))
}

/// No call that must not repeat was made twice; of what was purged nothing more can be said.
fn check_effects(account: &Account, log: &[String]) -> Result<()> {
    let known = account.keys();
    let (known, purged): (Vec<String>, Vec<String>) = log.iter().cloned().partition(|line| {
        line.split(' ')
            .nth(2)
            .is_some_and(|key| known.contains(key))
    });
    account.check_effects(&known)?;
    let mut sent = BTreeSet::new();
    for line in purged.iter().filter(|line| line.starts_with("send begin ")) {
        ensure!(sent.insert(line), "this was done twice: {line}");
    }
    Ok(())
}

/// Each acknowledged message is there, unless its session was purged; and there is no other.
fn check_inputs(account: &Account, ledger: &Ledger) -> Result<()> {
    let mut expected: BTreeSet<InputId> = BTreeSet::new();
    for (key, (input, session)) in &ledger.inputs {
        let input = input
            .parse()
            .with_context(|| format!("the input of {key}"))?;
        if ledger.purged.contains(session) {
            continue;
        }
        ensure!(
            expected.insert(input),
            "{key} and another key have the same input"
        );
        ensure!(
            account.accepted.contains_key(&input),
            "the message under {key} is not there"
        );
    }
    let strange: Vec<_> = account
        .accepted
        .keys()
        .filter(|input| !expected.contains(input))
        .collect();
    ensure!(
        strange.is_empty(),
        "messages that nobody was told of: {strange:?}"
    );
    Ok(())
}

/// Each session that was acknowledged was opened, and no other: those that agents begin aside.
fn check_sessions(events: &[Recorded], ledger: &Ledger) -> Result<()> {
    let opened: BTreeSet<SessionId> = events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Some(Event::SessionOpened(opened)) if opened.started_by.starts_with("user:") => {
                Some(opened.session)
            }
            _ => None,
        })
        .collect();
    let known: BTreeSet<SessionId> = ledger
        .sessions()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let lost: Vec<_> = known.difference(&opened).collect();
    let strange: Vec<_> = opened.difference(&known).collect();
    ensure!(lost.is_empty(), "sessions that are not there: {lost:?}");
    ensure!(
        strange.is_empty(),
        "sessions that nobody was told of: {strange:?}"
    );
    Ok(())
}
