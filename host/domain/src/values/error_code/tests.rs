//! The table of error codes: its order, which decides what is found, and what clients rely on.

use super::{ALL, ErrorCategory, category_of_tool, category_of_turn, find, is_retryable};
use std::collections::BTreeSet;

#[test]
fn each_code_stands_once_in_order_and_is_found() {
    for pair in ALL.windows(2) {
        assert!(pair[0].code < pair[1].code, "{pair:?}");
    }
    for known in ALL {
        assert_eq!(find(known.code), Some(known));
        let is_of_problems = known
            .code
            .chars()
            .all(|char| char.is_ascii_uppercase() || char == '_');
        let is_of_work = known
            .code
            .chars()
            .all(|char| char.is_ascii_lowercase() || char == '-');
        assert!(is_of_problems != is_of_work, "{known:?} has one spelling");
    }
    assert_eq!(find("NO_SUCH_CODE"), None);
    assert!(!is_retryable("NO_SUCH_CODE"));
}

#[test]
fn every_category_of_the_designs_has_a_code() {
    let used: BTreeSet<ErrorCategory> = ALL.iter().filter_map(|known| known.category).collect();
    assert_eq!(used, BTreeSet::from(ErrorCategory::ALL));
}

#[test]
fn what_passes_may_be_tried_again_and_what_is_wrong_may_not() {
    for (code, retryable, category) in [
        ("STARTING", true, Some(ErrorCategory::NotReady)),
        (
            "SHUTTING_DOWN",
            true,
            Some(ErrorCategory::ShutdownInProgress),
        ),
        ("QUEUE_FULL", true, Some(ErrorCategory::NotReady)),
        ("INVALID_FIELD", false, Some(ErrorCategory::MessageInvalid)),
        (
            "DEFINITION_NOT_FOUND",
            false,
            Some(ErrorCategory::InitFailed),
        ),
        ("PATH_TAKEN", false, Some(ErrorCategory::RegistrationFailed)),
        (
            "TASK_TIMEOUT",
            false,
            Some(ErrorCategory::ToolExecutionFailed),
        ),
        (
            "TASK_FAILED",
            false,
            Some(ErrorCategory::ToolExecutionFailed),
        ),
        (
            "TOOL_NOT_AVAILABLE",
            false,
            Some(ErrorCategory::ToolNotAvailable),
        ),
        (
            "model-unavailable",
            true,
            Some(ErrorCategory::LlmRequestFailed),
        ),
        ("model-garbage", true, Some(ErrorCategory::LlmStreamFailed)),
        (
            "step-failed",
            false,
            Some(ErrorCategory::MessageProcessingFailed),
        ),
        ("SESSION_NOT_FOUND", false, None),
    ] {
        let known = find(code).unwrap();
        assert_eq!(
            (known.retryable, known.category),
            (retryable, category),
            "{code}"
        );
    }
}

#[test]
fn a_code_of_an_agents_or_a_tools_own_has_the_category_of_its_place() {
    assert_eq!(
        category_of_turn("out of ideas"),
        ErrorCategory::MessageProcessingFailed
    );
    assert_eq!(
        category_of_turn("model-unavailable"),
        ErrorCategory::LlmRequestFailed
    );
    assert_eq!(
        category_of_tool("no-such-list"),
        ErrorCategory::ToolExecutionFailed
    );
    // That it took too long is said of a turn as well.
    assert_eq!(
        category_of_tool("timed-out"),
        ErrorCategory::ToolExecutionFailed
    );
    assert_eq!(
        category_of_tool("TOOL_NOT_AVAILABLE"),
        ErrorCategory::ToolNotAvailable
    );
}
