//! Guests that lie about what they hand over: handles, texts, ends.

use crate::CaseResult;
use crate::bindings::wasi::cli::exit::exit;
use crate::bindings::wasi::clocks::{monotonic_clock, wall_clock};
use crate::bindings::wasi::http::types::Fields;
use crate::bindings::wasi::io::poll::Pollable;
use crate::bindings::wasi::keyvalue::store::Bucket;
use plugin::tool::agent_host::plugin::types::ClientAction;
use plugin::tool::{Ask, Progress, done};
use serde_json::Value;

pub fn a_result_that_is_no_text_is_refused(_: &Value) -> CaseResult {
    // SAFETY: nothing in this guest reads it as text.
    done(unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]) })
}

pub fn a_handle_that_was_never_given_is_unknown(arguments: &Value) -> CaseResult {
    let index = arguments["index"].as_u64().unwrap_or_default() as u32;
    // SAFETY: that it is not what it says is what is tried.
    let forged = unsafe { Pollable::from_handle(index) };
    forged.block();
    done("blocked")
}

pub fn a_handle_of_another_kind_is_refused(_: &Value) -> CaseResult {
    // SAFETY: as above.
    let forged = unsafe { Pollable::from_handle(Fields::new().take_handle()) };
    done(format!("{}", forged.ready()))
}

pub fn a_handle_that_was_dropped_is_gone(_: &Value) -> CaseResult {
    let pollable = monotonic_clock::subscribe_duration(0);
    // SAFETY: as above.
    let twin = unsafe { Pollable::from_handle(pollable.handle()) };
    drop(pollable);
    done(format!("{}", twin.ready()))
}

pub fn a_bucket_that_was_never_opened_lists_nothing(arguments: &Value) -> CaseResult {
    let index = arguments["index"].as_u64().unwrap_or_default() as u32;
    // SAFETY: as above.
    let forged = unsafe { Bucket::from_handle(index) };
    done(format!("{}", forged.list_keys(Some(u64::MAX)).is_ok()))
}

pub fn an_exit_ends_the_guest_and_nothing_else(_: &Value) -> CaseResult {
    exit(Ok(()));
    done("still here")
}

pub fn a_panic_with_control_characters_is_told_without_them(_: &Value) -> CaseResult {
    panic!(
        "a\u{1b}[31m line\r\nERROR another line \u{202e}{}",
        "x".repeat(100_000)
    )
}

pub fn a_question_nested_without_end_is_refused(_: &Value) -> CaseResult {
    let props = format!(
        "{}{}",
        "{\"a\":".repeat(100_000),
        "1".to_owned() + &"}".repeat(100_000)
    );
    let action = ClientAction {
        widget: "form".into(),
        props,
        response_schema: None,
        lock_input: false,
    };
    Ok(Progress::Ask(Ask {
        action,
        state: Vec::new(),
    }))
}

pub fn a_question_with_a_schema_elsewhere_fetches_nothing(arguments: &Value) -> CaseResult {
    let schema = format!(r#"{{"$ref":{}}}"#, arguments["schema"]);
    let action = ClientAction {
        widget: "own_form".into(),
        props: "{}".into(),
        response_schema: Some(schema),
        lock_input: false,
    };
    Ok(Progress::Ask(Ask {
        action,
        state: Vec::new(),
    }))
}

/// The smallest steps of both clocks, in nanoseconds.
pub fn a_clock_is_no_finer_than_a_millisecond(_: &Value) -> CaseResult {
    let steps = |now: &dyn Fn() -> u64| {
        let mut smallest = u64::MAX;
        for _ in 0..3 {
            let began = now();
            let ended = loop {
                match now() {
                    same if same == began => {}
                    ended => break ended,
                }
            };
            smallest = smallest.min(ended.saturating_sub(began));
        }
        smallest
    };
    let wall = || {
        let wall_clock::Datetime {
            seconds,
            nanoseconds,
        } = wall_clock::now();
        seconds * 1_000_000_000 + u64::from(nanoseconds)
    };
    let smallest = steps(&monotonic_clock::now).min(steps(&wall));
    let said = monotonic_clock::resolution().min(u64::from(wall_clock::resolution().nanoseconds));
    done(format!("{} {}", smallest >= 1_000_000, said >= 1_000_000))
}
