//! Tests of schemas that end and of those that do not, on threads that can be given up.

use super::given_up::GIVEN_UP_SCHEMAS_MAX;
use super::threads::{GivenUp, THREADS_MAX, Threads};
use super::*;
use domain::digest::Digest;
use domain::json::DEPTH_MAX;
use domain::schema::{CHAIN_MAX, COMPARISONS_MAX, REFERENCES_MAX};
use domain::tool::EffectClass;
use serde_json::{Map, json};
use std::sync::mpsc::channel;
use std::time::Duration;
use tokio::task::JoinSet;

/// Returns a chain of definitions. Each refers to the next by `by`; the last one is `last`.
fn chained(links: usize, by: impl Fn(Value) -> Value, last: Value) -> Value {
    let next = |link: usize| by(json!({ "$ref": format!("#/$defs/d{}", link + 1) }));
    let mut definitions: Map<String, Value> = (1..links)
        .map(|link| (format!("d{link}"), next(link)))
        .collect();
    definitions.insert(format!("d{links}"), last);
    json!({ "$ref": "#/$defs/d1", "$defs": definitions })
}

async fn judged(schema: &Value, document: Value) -> Option<String> {
    Schemas::default().judge(schema, document).await.unwrap()
}

fn nested(levels: usize, innermost: Value) -> Value {
    (0..levels).fold(innermost, |within, _| json!([within]))
}

#[tokio::test]
async fn keys_where_there_may_be_none_are_named() {
    let closed = json!({ "type": "object", "additionalProperties": false });
    let reported = judged(&closed, json!({ "message": 1 })).await;
    assert_eq!(
        reported.as_deref(),
        Some("it takes no keys, and has `message`")
    );
    let within = json!({ "properties": { "a": closed, "b": false } });
    let reported = judged(&within, json!({ "a": { "x": {} } })).await;
    assert_eq!(
        reported.as_deref(),
        Some("/a: it takes no keys, and has `x`")
    );
    let reported = judged(&within, json!({ "b": { "x": 1 } })).await.unwrap();
    assert!(reported.starts_with("/b: False schema"), "{reported}");
}

/// Gives up what takes too long, and compares nothing when every thread is lost.
#[tokio::test]
async fn work_that_takes_too_long_is_given_up_until_no_thread_is_left() {
    let threads = Threads::giving_up_after(50);
    let mut ends = Vec::new();
    for lost in 1..=THREADS_MAX {
        let (end, ended) = channel::<()>();
        ends.push(end);
        assert_eq!(
            threads.run(move || ended.recv().is_err()).await,
            Err(GivenUp::TooLong)
        );
        assert_eq!(threads.lost(), lost);
    }
    assert_eq!(threads.run(|| 1).await, Err(GivenUp::Busy));
    // When one of them comes to its end after all, there is a thread again.
    drop(ends.pop());
    while threads.lost() == THREADS_MAX {
        tokio::task::yield_now().await;
    }
    while threads.run(|| 1).await != Ok(1) {}
    drop(ends);
    while threads.lost() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Waiting behind others is nobody's own time: each piece of work takes less than the limit, and
/// the last one, with its wait, takes more.
#[tokio::test]
async fn work_that_waits_for_a_thread_has_all_of_its_time_once_it_begins() {
    const LIMIT_MS: u64 = 1_000;
    let work = || std::thread::sleep(Duration::from_millis(LIMIT_MS * 6 / 10));
    let threads = Arc::new(Threads::giving_up_after(LIMIT_MS));
    let (begin, begun) = channel();
    let mut others = JoinSet::new();
    for _ in 0..THREADS_MAX {
        let threads = Arc::clone(&threads);
        let begin = begin.clone();
        others.spawn(async move {
            let working = move || {
                begin.send(()).unwrap();
                work();
            };
            threads.run(working).await
        });
    }
    let mut at_work = 0;
    while at_work < THREADS_MAX {
        tokio::task::yield_now().await;
        at_work += begun.try_iter().count();
    }
    assert_eq!(threads.run(work).await, Ok(()));
    assert_eq!(others.join_all().await, vec![Ok(()); THREADS_MAX]);
    assert_eq!(threads.lost(), 0);
}

/// Schemas that give up at once what takes more than a moment.
fn hasty() -> Schemas {
    Schemas {
        threads: Arc::new(Threads::giving_up_after(0)),
        given_up: Arc::default(),
    }
}

/// The same memory of what was given up, with the usual time.
fn patient(hasty: &Schemas) -> Schemas {
    Schemas {
        threads: Arc::default(),
        given_up: Arc::clone(&hasty.given_up),
    }
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        arguments: json!({ "type": "object" }),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

/// A document that takes many milliseconds.
fn long() -> Value {
    json!(vec![1; 400_000])
}

#[tokio::test]
async fn a_schema_that_was_given_up_is_refused_by_its_digest_and_costs_no_thread() {
    let schema = json!({ "items": { "type": "integer" } });
    let before = GivenUp::Before(Digest::of(schema.to_string().as_bytes()));
    let hasty = hasty();
    let patient = patient(&hasty);
    let compiled = patient.compile(&schema).await.unwrap();
    assert_eq!(patient.complaints(&compiled, json!([1])).await, Ok(None));

    assert_eq!(hasty.judge(&schema, long()).await, Err(GivenUp::TooLong));
    while hasty.threads.lost() > 0 {
        tokio::task::yield_now().await;
    }
    // Whoever comes with it, whatever the document: nobody looks at it.
    assert_eq!(hasty.judge(&schema, long()).await, Err(before));
    assert_eq!(hasty.threads.lost(), 0);
    assert_eq!(patient.judge(&schema, json!([])).await, Err(before));
    assert_eq!(patient.complaints(&compiled, json!([])).await, Err(before));
    assert_eq!(
        patient.compile(&schema).await.unwrap_err(),
        before.to_string()
    );
    let offered = ToolDefinition {
        arguments: schema.clone(),
        ..tool("offered")
    };
    let refused = patient
        .compile_tools(std::slice::from_ref(&offered))
        .unwrap_err();
    assert!(
        refused.contains("offered.arguments") && refused.contains(&before.to_string()),
        "{refused}"
    );
    // Of a list of tools, that one alone.
    let arguments = patient
        .compile_arguments(&[offered, tool("other")])
        .await
        .unwrap();
    let usable: Vec<bool> = arguments.iter().map(|(_, schema)| schema.is_ok()).collect();
    assert_eq!(usable, [false, true]);
    assert!(!before.failure().retryable && GivenUp::Busy.failure().retryable);
}

#[tokio::test]
async fn a_comparison_that_was_given_up_is_remembered_for_its_schema() {
    let schema = json!({ "items": { "type": "number" } });
    let hasty = hasty();
    let patient = patient(&hasty);
    let compiled = patient.compile(&schema).await.unwrap();
    assert_eq!(
        hasty.complaints(&compiled, long()).await,
        Err(GivenUp::TooLong)
    );
    assert!(matches!(
        patient.judge(&schema, json!([])).await,
        Err(GivenUp::Before(_))
    ));
}

#[test]
fn of_many_schemas_that_were_given_up_the_oldest_is_forgotten() {
    let schema = |n: usize| json!({ "const": n });
    let memory = GivenUpSchemas::default();
    for n in 0..=GIVEN_UP_SCHEMAS_MAX {
        memory.remember(&schema(n));
        // Once more is no other one.
        memory.remember(&schema(n));
    }
    assert_eq!(memory.check(&schema(0)), Ok(()));
    for n in 1..=GIVEN_UP_SCHEMAS_MAX {
        assert!(memory.check(&schema(n)).is_err(), "{n}");
    }
}

#[tokio::test]
async fn a_format_is_an_annotation_in_every_draft() {
    for draft in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        for format in ["email", "regex", "uri", "idn-hostname", "made-up"] {
            let schema = json!({ "$schema": draft, "format": format });
            let document = json!("((no such thing");
            assert_eq!(judged(&schema, document).await, None, "{draft} {format}");
        }
    }
}

#[tokio::test]
async fn a_panic_while_comparing_is_an_error_and_costs_no_thread() {
    let threads = Threads::giving_up_after(10_000);
    for _ in 0..2 * THREADS_MAX {
        assert_eq!(
            threads.run(|| -> u8 { panic!("as a test wants it") }).await,
            Err(GivenUp::Panicked)
        );
    }
    assert_eq!(threads.run_and_wait(|| 7), Ok(7));
}

#[tokio::test]
async fn the_deepest_schema_is_compared_with_the_deepest_document() {
    let list =
        json!({ "anyOf": [{ "type": "integer" }, { "type": "array", "items": { "$ref": "#" } }] });
    let schema = chained(CHAIN_MAX - 4, |next| next, list);
    assert_eq!(judged(&schema, nested(DEPTH_MAX, json!(1))).await, None);
    assert!(
        judged(&schema, nested(DEPTH_MAX, json!("x")))
            .await
            .is_some()
    );
    // A schema compiled from many references is dropped on a stack of the usual size.
    let long = chained(
        REFERENCES_MAX - 1,
        |next| json!({ "items": next }),
        json!({ "type": "integer" }),
    );
    assert_eq!(judged(&long, nested(3, json!([]))).await, None);
    let schema = Schemas::default().compile(&long).await.unwrap();
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || drop(schema))
        .unwrap()
        .join()
        .unwrap();
}

#[tokio::test]
async fn a_schema_or_a_pattern_that_asks_for_too_much_is_refused() {
    let doubling = chained(
        60,
        |next| json!({ "allOf": [next.clone(), next] }),
        json!({}),
    );
    let refused = Schemas::default().compile(&doubling).await.unwrap_err();
    assert!(refused.contains("more than"), "{refused}");
    assert!(
        judged(&doubling, json!(1))
            .await
            .unwrap()
            .contains("cannot be used")
    );
    for pattern in ["(a{1000}){1000}", "(?=a)b", r"(a)\1"] {
        assert!(
            Schemas::default()
                .compile(&json!({ "pattern": pattern }))
                .await
                .is_err(),
            "{pattern}"
        );
    }
    let by_levels =
        json!({ "allOf": [{ "items": { "$ref": "#" } }, { "items": { "$ref": "#" } }] });
    assert!(
        judged(&by_levels, nested(60, json!(1)))
            .await
            .unwrap()
            .contains(&COMPARISONS_MAX.to_string())
    );
}

#[tokio::test]
async fn a_pattern_that_would_try_everything_takes_one_look_at_each_letter() {
    let text = format!("{}!", "a".repeat(100_000));
    assert!(
        judged(&json!({ "pattern": "^(a+)+$" }), json!(text))
            .await
            .is_some()
    );
}

#[tokio::test]
async fn a_large_document_is_told_to_be_wrong_without_a_list_of_all_that_is() {
    let numbers = json!({ "items": { "type": "integer" } });
    let few = judged(&numbers, json!(["x", "y"])).await.unwrap();
    assert!(few.contains("/0: ") && few.contains("/1: "), "{few}");
    assert!(
        judged(&numbers, json!(vec!["x"; 100_000]))
            .await
            .unwrap()
            .contains("too large")
    );
    assert_eq!(judged(&numbers, json!(vec![1; 100_000])).await, None);
}

#[tokio::test]
async fn a_schema_that_takes_the_name_of_another_refers_to_itself() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "http://json-schema.org/draft-07/schema#",
        "items": { "$ref": "#/definitions/own" }, "definitions": { "own": { "type": "integer" } },
    });
    assert_eq!(judged(&schema, json!([1])).await, None);
    assert!(judged(&schema, json!(["x"])).await.is_some());
}
