//! The table of error codes: what is found, and what clients rely on.

use super::{
    ErrorCategory, ErrorCode, ErrorKind, all, category_of_tool, category_of_turn, find,
    is_retryable,
};
use std::collections::BTreeSet;

#[test]
fn each_code_stands_once_for_a_status_and_is_found() {
    let mut seen = BTreeSet::new();
    for code in ErrorCode::ALL {
        assert!(seen.insert((code.as_str(), code.status())), "{code} twice");
    }
    for known in all() {
        assert_eq!(find(known.code).map(|found| found.code), Some(known.code));
        let of_letters = |is_letter: fn(&char) -> bool, also| {
            known
                .code
                .chars()
                .all(|char| is_letter(&char) || char == also)
        };
        let is_of_problems = of_letters(char::is_ascii_uppercase, '_');
        let is_of_work = of_letters(char::is_ascii_lowercase, '-');
        assert!(is_of_problems != is_of_work, "{known:?} has one spelling");
    }
    assert_eq!(find("NO_SUCH_CODE"), None);
    assert!(!is_retryable("NO_SUCH_CODE"));
}

#[test]
fn what_says_when_to_try_again_is_worth_another_try() {
    for code in ErrorCode::ALL {
        assert!(
            code.is_retryable() || code.retry_after_s().is_none(),
            "{code}"
        );
        assert!(
            code.is_retryable() || code.kind() != ErrorKind::Unavailable,
            "{code}"
        );
    }
}

#[test]
fn every_category_of_the_designs_has_a_code() {
    let used: BTreeSet<ErrorCategory> = all().filter_map(|known| known.category).collect();
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
