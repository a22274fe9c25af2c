//! Guards: their judgement of rows, their footprints, and the walk along a thread.

use super::sample::{NOON, Sample, agent, opened, run, session, take_turn};
use crate::guard::Answers;
use crate::meta;
use crate::query::{Row, Value};
use crate::writer::FORGOTTEN;
use crate::{
    AgentGuard, ChatWith, Clash, Commit, CommitError, Guard, Resource, RunGuard, SessionGuard,
    UserGuard,
};
use domain::digest::Digest;
use domain::event::{AgentArchived, Event};
use domain::id::{SessionId, TurnId};
use domain::persona::PersonaId;
use domain::user::UserId;

async fn shows(sample: &Sample, session: SessionId, turn: TurnId) -> bool {
    let guard = Guard::from(SessionGuard::Shows { session, turn });
    match sample.commit(Commit::new().guard(guard.clone())).await {
        Ok(_) => true,
        Err(CommitError::Conflict(conflict)) => {
            assert_eq!(conflict.clash, Clash::Guard(guard));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// The number of times that the writer forgot the rows that guards look at.
async fn times_forgotten(sample: &Sample) -> u64 {
    let forgotten = sample.in_writer(|_| Ok(FORGOTTEN.get())).await;
    forgotten.unwrap()
}

#[tokio::test]
async fn what_guards_look_at_is_remembered_over_work_that_changes_nothing() {
    let sample = Sample::begun().await;
    let before = times_forgotten(&sample).await;
    assert_eq!(times_forgotten(&sample).await, before);
    let noted = sample.in_writer(|sql| meta::note(sql, "sample", "noted"));
    noted.await.unwrap();
    assert_eq!(times_forgotten(&sample).await, before + 1);
}

#[tokio::test]
async fn a_session_shows_its_thread_and_what_was_made_in_it() {
    let sample = Sample::begun().await;
    let mut turns = vec![take_turn(&sample.store, 1, None, 1, "user", "assistant").await];
    for n in 2..=20 {
        let turn = take_turn(&sample.store, 1, turns.last(), n, "user", "assistant").await;
        turns.push(turn);
    }
    let fork_at = &turns[9];
    sample.in_session(2, [opened(2, 1, Some(fork_at.id))]).await;
    let fork = take_turn(&sample.store, 2, Some(fork_at), 500, "user", "assistant").await;
    sample.in_session(3, [opened(3, 1, None)]).await;

    for (index, turn) in turns.iter().enumerate() {
        assert!(shows(&sample, session(1), turn.id).await, "turn {index}");
        assert_eq!(
            shows(&sample, session(2), turn.id).await,
            index <= 9,
            "turn {index} in the fork"
        );
        assert!(!shows(&sample, session(3), turn.id).await, "turn {index}");
    }
    assert!(shows(&sample, session(2), fork.id).await);
    assert!(!shows(&sample, session(1), fork.id).await);
    let nowhere = TurnId(Digest::of(b"nowhere"));
    assert!(!shows(&sample, session(1), nowhere).await);
    assert!(!shows(&sample, session(4), fork.id).await);
}

#[test]
fn rows_are_judged_without_a_store() {
    let guard = Guard::from(SessionGuard::NoOpenRun(session(1)));
    let judge = |row: Option<Row>| {
        let answers: Answers = [row.into(), None.into()];
        guard.judge(&answers).unwrap()
    };
    assert_eq!(judge(None).as_deref(), Some("there is no such session"));
    assert_eq!(judge(Some(Row::new([Value::Null]))), None);
    let open = Row::new([Value::id(&run(1))]);
    assert_eq!(judge(Some(open)), Some(format!("run {} is open", run(1))));
    let damaged: Answers = [Some(Row::new([Value::number(1)])).into(), None.into()];
    assert!(guard.judge(&damaged).is_err());
}

#[test]
fn a_footprint_names_what_the_judgement_rests_on() {
    let waits = SessionGuard::MayWait {
        session: session(1),
        for_session: session(2),
    };
    assert_eq!(
        Guard::from(waits).footprint(),
        [
            Resource::Session(session(1)),
            Resource::Session(session(2)),
            Resource::Waits,
        ]
    );
    assert_eq!(
        Guard::from(RunGuard::Open(run(1))).footprint(),
        [Resource::Run(run(1))]
    );
    assert_eq!(
        Guard::from(AgentGuard::Active(agent(1))).footprint(),
        [Resource::Agent(agent(1))]
    );
}

fn no_chat(with: ChatWith) -> Guard {
    let user = UserId::local();
    UserGuard::NoChat { user, with }.into()
}

#[test]
fn the_footprint_of_a_missing_chat_depends_on_its_addressee() {
    let chats = || Resource::User(UserId::local());
    assert_eq!(no_chat(ChatWith::Agent(agent(1))).footprint(), [chats()]);
    let persona: PersonaId = "tutor".parse().unwrap();
    assert_eq!(
        no_chat(ChatWith::Persona(persona)).footprint(),
        [chats(), Resource::AgentsOf(UserId::local())]
    );
    let turn = TurnId(Digest::of(b"turn"));
    assert_eq!(
        no_chat(ChatWith::Turn(turn)).footprint(),
        [chats(), Resource::TurnsAfter(turn)]
    );
}

/// The chat is an agent's whom the guard does not name: that is why all of the user's agents are in
/// its footprint.
#[tokio::test]
async fn a_persona_has_no_chat_once_its_agent_is_archived() {
    let sample = Sample::begun().await;
    let persona: PersonaId = "tutor".parse().unwrap();
    let Event::SessionOpened(mut led) = opened(2, 1, None) else {
        panic!("a session")
    };
    led.persona = Some(persona.clone());
    sample.in_session(2, [Event::SessionOpened(led)]).await;
    let guarded = || Commit::new().guard(no_chat(ChatWith::Persona(persona.clone())));
    let refused = sample.commit(guarded()).await;
    assert!(
        matches!(refused, Err(CommitError::Conflict(_))),
        "{refused:?}"
    );
    let archived = AgentArchived {
        agent: agent(1),
        path: "/ada/assistant".parse().unwrap(),
        reason: "done".to_owned(),
        archived_at: NOON,
    };
    sample.in_agent(1, [Event::AgentArchived(archived)]).await;
    sample.commit(guarded()).await.unwrap();
}
