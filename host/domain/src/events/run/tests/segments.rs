//! State and questions that calls leave between their segments.

use super::*;

/// The state for a call's next segment stays stored, and so does its question.
#[test]
fn a_run_counts_all_that_its_calls_leave_between_their_segments() {
    let mut run = with_two_calls(EffectClass::ReadOnly);
    let operations: Vec<_> = run.open.keys().copied().collect();
    let action = serde_json::json!({ "widget": "text", "props": { "label": "Who?" } });
    let pauses = [
        Pause::Until { due: NOW },
        Pause::Asking {
            tool: "notes_add".to_owned(),
            action: serde_json::from_value(action).unwrap(),
            until: None,
            since: NOW,
        },
    ];
    for (operation, pause) in operations.into_iter().zip(pauses) {
        let continued = Continuation {
            operation,
            segment: 1,
            state: vec![0; 1_000],
            pause,
            active_ms: 0,
            call: None,
        };
        run = run.apply(&Event::OperationContinued(continued)).unwrap();
    }
    assert_eq!(
        run.segments_bytes,
        2_000 + r#"{"label":"Who?"}"#.len() as u64
    );
}
