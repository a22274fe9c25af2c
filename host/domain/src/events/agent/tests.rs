//! Tests of the aggregate as a whole. Any sequence of commands keeps its invariants, and its state
//! is the fold of its events from any point.

use super::start_session::Beginning;
use super::*;
use crate::access::tool::ClientAction;
use crate::agents::path::{AgentConfig, PathKind};
use crate::agents::role::AgentRole;
use crate::agents::session::{Execution, PendingAction, Phase, Withdrawal};
use crate::values::digest::Digest;
use crate::values::id::{ConversationId, RunId, SessionId};
use crate::values::refusal::Refusal;
use crate::work::operation::Kept;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use uuid::Uuid;

/// A time for tests in which no result depends on the time.
pub(super) const T: Timestamp = Timestamp(1_000);

pub(super) fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

/// Outcome of a command.
pub(super) trait Outcome {
    fn event(self) -> Event;
}

impl Outcome for Option<Event> {
    fn event(self) -> Event {
        self.unwrap()
    }
}

impl Outcome for Result<Event, Refusal> {
    fn event(self) -> Event {
        self.unwrap()
    }
}

impl Outcome for Result<Option<Event>, Refusal> {
    fn event(self) -> Event {
        self.unwrap().unwrap()
    }
}

impl Agent {
    /// The agent after the event of a command.
    pub(super) fn then(&self, outcome: impl Outcome) -> Self {
        self.after(&outcome.event())
    }
}

pub(super) fn code_of<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> &'static str {
    refused.unwrap_err().code.as_str()
}

pub(super) fn field_of<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> String {
    refused.unwrap_err().field.unwrap()
}

/// Alice's tutor.
pub(super) fn agent() -> Agent {
    Agent::apply(None, &created()).unwrap()
}

fn created() -> Event {
    Event::AgentCreated(AgentCreated {
        agent: AgentId(Uuid::from_u128(1)),
        definition: DefinitionId("tutor".into()),
        agent_type: "tutor".into(),
        path: "/alice/agent/tutor".parse().unwrap(),
        kind: PathKind::Agent,
        config: AgentConfig::default(),
        parent: None,
        owner_user_id: user("alice"),
        name: lifecycle::default_name("tutor"),
        denies: Denies::default(),
        permissions: Default::default(),
        created_at: Timestamp(3),
    })
}

pub(super) fn beginning() -> Beginning {
    Beginning {
        session_id: SessionId(Uuid::from_u128(2)),
        conversation_id: ConversationId(Uuid::from_u128(3)),
        session_type: "learning".into(),
        started_by: user("alice"),
        time_limit_ms: None,
        items_imported: 0,
    }
}

pub(super) fn with_session() -> Agent {
    let agent = agent();
    agent.then(agent.start_session(beginning(), T))
}

pub(super) fn call(n: u8) -> OperationId {
    OperationId(Digest([n; 32]))
}

pub(super) fn question(n: u8) -> PendingAction {
    let action = ClientAction {
        widget: "confirmation".into(),
        props: json!({ "n": n }),
        response_schema: None,
        lock_input: true,
    };
    PendingAction {
        tool_call_id: call(n),
        tool_name: format!("q{n}"),
        action,
    }
}

pub(super) fn execution() -> Execution {
    let run = RunId(Uuid::from_u128(4));
    Execution {
        run,
        iteration: 3,
        tool_calls_made: 5,
        head: 12,
        started_at: Timestamp(1),
        suspended_at: Timestamp(2),
    }
}

/// A session that ended elsewhere, after as many milliseconds.
pub(super) fn past(n: u8, status: EndStatus) -> PastSession {
    PastSession {
        session_id: SessionId(Uuid::from_u128(200 + u128::from(n))),
        conversation_id: beginning().conversation_id,
        session_type: "learning".into(),
        started_by: user("bob"),
        status,
        started_at: Timestamp(1),
        completed_at: Timestamp(1 + u64::from(n)),
        terminated_reason: None,
        interactions: u64::from(n),
        summary: None,
    }
}

#[test]
fn its_creator_is_primary_from_the_created_event_alone() {
    let agent = agent();
    assert_eq!(agent.name, "Tutor Agent");
    assert_eq!(
        agent.assignments,
        [Assignment {
            user_id: user("alice"),
            role: AgentRole::Primary,
            assigned_at: Timestamp(3),
            assigned_by: user("alice")
        }]
    );
    assert_eq!(
        (
            agent.created_at,
            agent.updated_at,
            agent.last_interaction_at
        ),
        (Timestamp(3), Timestamp(3), None)
    );
}

#[test]
fn an_agent_reads_as_it_was_written() {
    let agent = with_session();
    let agent = agent.then(agent.suspend_execution(execution(), question(1), T));
    let text = serde_json::to_string(&agent).unwrap();
    assert_eq!(serde_json::from_str::<Agent>(&text).unwrap(), agent);
}

#[test]
fn before_it_was_created_there_is_nothing() {
    assert_eq!(
        Agent::apply(
            None,
            &with_session().terminate_session("x".into(), T).unwrap()
        ),
        None
    );
}

/// A command as a client may send it, sensible or not.
#[derive(Debug, Clone)]
enum Command {
    Start(u8),
    Suspend(u8),
    Request(u8),
    Answer(u8),
    Resume(u8),
    Receive(u8),
    Withdraw(u8),
    Complete,
    Terminate,
    Import(u8, bool),
    Archive,
    Assign(u8, usize, u8),
    ChangeRole(u8, usize, u8),
    Unassign(u8, u8),
    HandOff(u8, Option<usize>, u8),
    Prefer(u8, Option<u8>),
    Rename(u8),
    Prompt(Option<u8>),
    Settings(u8, bool),
}

fn command() -> impl Strategy<Value = Command> {
    use Command::*;
    let id = 0..6_u8;
    let role = 0..4_usize;
    let who = 0..5_u8;
    prop_oneof![
        id.clone().prop_map(Start),
        id.clone().prop_map(Suspend),
        id.clone().prop_map(Request),
        id.clone().prop_map(Answer),
        id.clone().prop_map(Resume),
        id.clone().prop_map(Receive),
        id.clone().prop_map(Withdraw),
        Just(Complete),
        Just(Terminate),
        (id.clone(), any::<bool>()).prop_map(|(a, b)| Import(a, b)),
        prop_oneof![9 => Just(Rename(0)), 1 => Just(Archive)],
        (who.clone(), role.clone(), who.clone()).prop_map(|(a, b, c)| Assign(a, b, c)),
        (who.clone(), role.clone(), who.clone()).prop_map(|(a, b, c)| ChangeRole(a, b, c)),
        (who.clone(), who.clone()).prop_map(|(a, b)| Unassign(a, b)),
        (who.clone(), proptest::option::of(role), who.clone())
            .prop_map(|(a, b, c)| HandOff(a, b, c)),
        (id.clone(), proptest::option::of(who)).prop_map(|(a, b)| Prefer(a, b)),
        id.clone().prop_map(Rename),
        proptest::option::of(id.clone()).prop_map(Prompt),
        (id, any::<bool>()).prop_map(|(a, b)| Settings(a, b)),
    ]
}

fn carry_out(agent: &Agent, command: &Command, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let who = |n: u8| user(["alice", "bob", "carol", "dan", "eve"][usize::from(n)]);
    let keys = |n: u8, value: Value| Map::from_iter([(format!("k{n}"), value)]);
    let one = |event: Event| vec![event];
    let maybe = |event: Option<Event>| event.into_iter().collect();
    match *command {
        Command::Start(n) => {
            let session_id = SessionId(Uuid::from_u128(100 + u128::from(n)));
            agent
                .start_session(
                    Beginning {
                        session_id,
                        ..beginning()
                    },
                    now,
                )
                .map(one)
        }
        Command::Suspend(n) => agent
            .suspend_execution(execution(), question(n), now)
            .map(one),
        Command::Request(n) => agent.request_client_action(question(n), now).map(one),
        Command::Answer(n) => agent.answered(call(n), Kept::Value(json!(n)), now).map(one),
        Command::Resume(n) => agent
            .resume_execution(call(n), Kept::Value(json!(n)), now)
            .map(one),
        Command::Receive(n) => agent
            .receive_client_response(call(n), Kept::Value(json!(n)), now)
            .map(one),
        Command::Withdraw(n) => Ok(maybe(agent.withdraw_action(
            call(n),
            Withdrawal::TimedOut,
            now,
        ))),
        Command::Complete => agent.complete_session(json!({}), now).map(one),
        Command::Terminate => agent.terminate_session("x".into(), now).map(one),
        Command::Import(n, well) => {
            let status = if well {
                EndStatus::Completed
            } else {
                EndStatus::Terminated
            };
            agent
                .import_session(past(n, status), "x/1".into(), now)
                .map(one)
        }
        Command::Archive => agent.archive("x".into(), now).map(one),
        Command::Assign(user, role, by) => agent
            .assign_user(who(user), AgentRole::ALL[role], who(by), now)
            .map(one),
        Command::ChangeRole(user, role, by) => agent
            .change_role(who(user), AgentRole::ALL[role], who(by), now)
            .map(maybe),
        Command::Unassign(user, by) => agent.unassign_user(who(user), who(by), now).map(one),
        Command::HandOff(to, keep, by) => {
            agent.hand_off(who(to), keep.map(|role| AgentRole::ALL[role]), who(by), now)
        }
        Command::Prefer(n, of) => agent
            .update_preferences(keys(n, json!(n)), of.map(who), now)
            .map(maybe),
        Command::Rename(n) => agent.rename(format!("name {n}"), now).map(maybe),
        Command::Prompt(n) => agent
            .override_prompt(n.map(|n| format!("prompt {n}")), now)
            .map(maybe),
        Command::Settings(n, set) => agent
            .update_settings(keys(n, if set { json!(n) } else { Value::Null }), now)
            .map(maybe),
    }
}

/// The invariants of the design, section 5.3, as far as the types leave them open.
fn check(agent: &Agent, before: &Agent, events: &[Event]) {
    // 1 and 2 are in the types: one optional session, an execution state in one phase of it.
    // Nothing waits twice.
    let waiting: Vec<OperationId> = agent
        .active_session
        .iter()
        .flat_map(|session| session.phase.pending())
        .map(|action| action.tool_call_id)
        .collect();
    assert_eq!(agent.is_suspended(), !waiting.is_empty());
    for event in events {
        match event {
            // 3: an answer names what waited.
            Event::ExecutionResumed(domain_event) => {
                assert!(waits(before, domain_event.tool_call_id))
            }
            Event::ResponseReceived(domain_event) => {
                assert!(waits(before, domain_event.tool_call_id))
            }
            // 4: none starts while another is active.
            Event::SlotTaken(_) => {
                assert!(before.active_session.is_none() && !before.is_archived())
            }
            _ => {}
        }
    }
    // 5: none is active in an archived agent, and it stays archived.
    assert!(!(agent.is_archived() && agent.active_session.is_some()));
    assert!(!before.is_archived() || (events.is_empty() && agent.is_archived()));
    // 6: each user once. 7: one user is PRIMARY.
    let users: BTreeSet<&UserId> = agent
        .assignments
        .iter()
        .map(|assignment| &assignment.user_id)
        .collect();
    assert_eq!(users.len(), agent.assignments.len());
    assert!(
        agent
            .assignments
            .iter()
            .any(|assignment| assignment.role == AgentRole::Primary)
    );
    assert!(agent.session_history.len() <= HISTORY_MAX);
    // The history begins with what ended last, wherever that was.
    assert!(
        agent
            .session_history
            .is_sorted_by(|later, earlier| later.completed_at >= earlier.completed_at)
    );
    assert!(agent.successful_completions <= agent.total_sessions);
}

fn waits(agent: &Agent, call: OperationId) -> bool {
    agent
        .active_session
        .iter()
        .flat_map(|session| session.phase.pending())
        .any(|action| action.tool_call_id == call)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_sequence_of_commands_keeps_the_invariants_and_is_the_fold_of_its_events(
        commands in proptest::collection::vec(command(), 1..120),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut agent = agent();
        let mut log = vec![created()];
        for (n, command) in (0_u64..).zip(commands) {
            let Ok(events) = carry_out(&agent, &command, Timestamp(10 + n)) else { continue };
            let after = events.iter().fold(agent.clone(), |agent, event| agent.after(event));
            check(&after, &agent, &events);
            agent = after;
            log.extend(events);
        }
        let whole = log.iter().fold(None, Agent::apply);
        prop_assert_eq!(whole.as_ref(), Some(&agent));
        // From any snapshot, written and read back.
        let (first, rest) = log.split_at(cut.index(log.len()).max(1));
        let snapshot = serde_json::to_string(&first.iter().fold(None, Agent::apply)).unwrap();
        let folded = rest.iter().fold(serde_json::from_str(&snapshot).unwrap(), Agent::apply);
        prop_assert_eq!(folded, Some(agent));
    }
}

#[test]
fn only_a_waiting_session_has_an_execution_state() {
    let agent = with_session();
    assert_eq!(agent.active_session.as_ref().unwrap().phase, Phase::Active);
    let agent = agent.then(agent.suspend_execution(execution(), question(1), T));
    let agent = agent.then(agent.resume_execution(call(1), Kept::Value(json!(1)), T));
    assert_eq!(agent.active_session.unwrap().phase, Phase::Active);
}
