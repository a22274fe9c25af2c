//! Tables of tasks: their states, their content and their sums.

use super::{
    Carrier, Durations, PARAMETERS_BYTES_MAX, SUMS_MAX, TaskFacts, TaskKind, TaskSample, TaskStats,
    TaskStatus, TaskTally, content,
};
use crate::access::tool::EffectClass;
use crate::thread::turn::TurnEnd;
use crate::values::id::{AgentId, InputId, OperationId, RunId, SessionId};
use crate::values::time::Timestamp;
use crate::work::delegate::TaskState;
use crate::work::operation::{Operation, Performer};
use serde_json::json;
use uuid::Uuid;

#[test]
fn the_state_of_a_task_follows_from_its_operation_its_input_and_its_turn() {
    use TaskStatus::{Cancelled, Completed, Failed, Paused, Pending, Queued, Running, Timeout};
    let waiting = |queued| TaskFacts {
        settled: None,
        carrier: Carrier::Waiting { queued },
        end: None,
        asks: false,
    };
    let at = |carrier| TaskFacts {
        carrier,
        ..waiting(false)
    };
    let ended = |end| TaskFacts {
        end: Some(end),
        ..at(Carrier::Consumed)
    };
    let asking = TaskFacts {
        asks: true,
        ..at(Carrier::Claimed)
    };
    let settled = |settled, facts| TaskFacts {
        settled: Some(settled),
        ..facts
    };
    for (facts, expected) in [
        (waiting(false), Pending),
        (waiting(true), Queued),
        (at(Carrier::Claimed), Running),
        (asking, Paused),
        (at(Carrier::Consumed), Running),
        (at(Carrier::Dead), Failed),
        (at(Carrier::Gone), Cancelled),
        (ended(TurnEnd::Replied), Completed),
        (ended(TurnEnd::Completed), Completed),
        (ended(TurnEnd::Failed), Failed),
        (ended(TurnEnd::Aborted), Cancelled),
        (settled(TaskState::Timeout, waiting(true)), Timeout),
        (settled(TaskState::Cancelled, asking), Cancelled),
        (settled(TaskState::Failed, ended(TurnEnd::Replied)), Failed),
        (
            settled(TaskState::Completed, at(Carrier::Consumed)),
            Completed,
        ),
    ] {
        assert_eq!(facts.status(), expected, "{facts:?}");
    }
}

fn operation(performer: Performer) -> Operation {
    Operation {
        id: OperationId::mint(RunId(Uuid::nil()), 0, "d"),
        key: "d".into(),
        step: 0,
        place: 0,
        performer,
        effect: EffectClass::NonIdempotent,
        time_limit_ms: None,
        deadline: None,
        answers: None,
        in_thread: false,
        reserved: Default::default(),
        approval: None,
    }
}

fn handed_over(delegation: Option<String>, queued: bool) -> Operation {
    operation(Performer::Agent {
        agent: AgentId(Uuid::nil()),
        session: SessionId(Uuid::nil()),
        input: InputId(Uuid::nil()),
        delegation,
        message: None,
        since: Timestamp(0),
        queued,
    })
}

#[test]
fn a_task_shows_its_operation_and_no_more_of_its_parameters_than_fits() {
    let long = "é".repeat(PARAMETERS_BYTES_MAX);
    let arguments = json!({
        "target": "worker", "operation": "write_file", "parameters": { "content": long },
    });
    let shown = content(&handed_over(Some(arguments.to_string()), true)).expect("a task");
    assert_eq!(
        (
            shown.kind,
            shown.target.as_deref(),
            shown.operation.as_deref(),
            shown.queued
        ),
        (TaskKind::Delegate, Some("worker"), Some("write_file"), true)
    );
    let parameters = shown.parameters.expect("parameters");
    assert!(parameters.len() <= PARAMETERS_BYTES_MAX + '…'.len_utf8());
    assert!(parameters.ends_with('…'), "{parameters}");
    let other = content(&handed_over(None, false)).expect("a task");
    assert_eq!(
        (other.kind, other.target, other.detached),
        (TaskKind::Dispatch, None, false)
    );
    assert_eq!(
        content(&operation(Performer::Timer { due: Timestamp(1) })),
        None
    );
}

fn sample(operation: &str, status: TaskStatus, duration_ms: Option<u64>) -> TaskSample {
    TaskSample {
        target: "worker".into(),
        operation: Some(operation.into()),
        status,
        duration_ms,
        tokens: 10,
        cost_micros: 3,
    }
}

fn summed_up(samples: impl IntoIterator<Item = TaskSample>) -> TaskStats {
    let mut tally = TaskTally::default();
    for sample in samples {
        tally.add(sample);
    }
    tally.stats()
}

#[test]
fn tasks_are_summed_up_by_target_and_operation() {
    let mut samples: Vec<TaskSample> = (1..=20)
        .map(|n| sample("read_file", TaskStatus::Completed, Some(n * 10)))
        .collect();
    samples.push(sample("list_files", TaskStatus::Failed, Some(7)));
    samples.push(sample("list_files", TaskStatus::Timeout, Some(9)));
    samples.push(sample("list_files", TaskStatus::Queued, None));
    let TaskStats { sums, is_cut_off } = summed_up(samples);
    assert!(!is_cut_off);
    let [list, read] = sums.as_slice() else {
        panic!("{sums:?}")
    };
    assert_eq!(
        (
            list.count(),
            list.failures(),
            list.p50_ms,
            list.p95_ms,
            list.tokens
        ),
        (3, 2, Some(7), Some(9), 30)
    );
    assert_eq!(
        (
            read.count(),
            read.failures(),
            read.p50_ms,
            read.p95_ms,
            read.cost_micros
        ),
        (20, 0, Some(100), Some(190), 60)
    );
    assert_eq!(summed_up([]), TaskStats::default());
}

#[test]
fn targets_and_operations_beyond_the_limit_are_left_out_and_that_is_told() {
    let of = |n: usize| sample(&format!("o{n}"), TaskStatus::Completed, Some(1));
    let stats = summed_up((0..SUMS_MAX).chain(0..SUMS_MAX).map(of));
    assert!(!stats.is_cut_off);
    assert!(stats.sums.iter().all(|sum| sum.count() == 2));
    let stats = summed_up((0..=SUMS_MAX).map(of));
    assert!(stats.is_cut_off);
    assert_eq!(stats.sums.len(), SUMS_MAX);
}

#[test]
fn durations_take_room_by_their_size_and_not_by_their_number() {
    let mut durations = Durations::default();
    for ms in 0..300_000 {
        durations.add(ms);
    }
    let kept = durations.counts.len();
    assert!(kept < 6_000, "{kept}");
    for (of_hundred, exact) in [(50, 149_999_u64), (95, 284_999)] {
        let found = durations.percentile(of_hundred).unwrap();
        assert!(found >= exact && found - exact <= exact / 500, "{found}");
    }
    durations.add(u64::MAX);
    assert_eq!(durations.percentile(100), Some(u64::MAX));
    assert_eq!(Durations::default().percentile(50), None);
}
