//! Tool calls: a tool's context, what it reaches, and that nothing of one call is left for the
//! next.

use crate::fixture::{Fixture, Kept, Noted, assert_faulted, done, failed, tool_call};
use agent_host_runtime::{Described, FolderError, Outcome};
use domain::event::BoundaryVerdict;
use domain::grant::{Access, Bound, DirectoryGrant};
use domain::operation::Progress;
use domain::ruling::{Rule, Ruling};
use domain::tool::ToolError;
use std::sync::Arc;

#[tokio::test]
async fn a_tool_is_told_its_context_and_its_notes_are_passed_on() {
    let (fixture, echo) = Fixture::of("echo").await;
    let Described::Tools(tools) = echo.describes() else {
        panic!("no tools")
    };
    assert_eq!(tools.len(), 9);
    let notes = Arc::new(Noted::default());
    let called = fixture
        .runtime
        .call(
            &echo,
            &Bound::default(),
            tool_call("echo", r#"{"a":1}"#),
            notes.clone(),
            Arc::<Kept>::default(),
        )
        .await;
    assert_eq!(done(&called), r#"{"a":1}"#);
    assert_eq!(*notes.0.lock().unwrap(), ["about to echo"]);
    let context = done(&fixture.call(&echo, "context", "{}").await);
    assert!(
        context.contains(r#"idempotency-key: "call-0""#) && context.contains("deadline-ms: 30000"),
        "{context}"
    );
}

#[tokio::test]
async fn more_notes_than_ten_a_second_are_dropped() {
    let (fixture, echo) = Fixture::of("echo").await;
    let notes = Arc::new(Noted::default());
    let called = fixture
        .runtime
        .call(
            &echo,
            &Bound::default(),
            tool_call("chatter", "{}"),
            notes.clone(),
            Arc::<Kept>::default(),
        )
        .await;
    assert_eq!(done(&called), "chattered");
    // The call may straddle two seconds.
    assert!((10..=20).contains(&notes.0.lock().unwrap().len()));
}

#[tokio::test]
async fn a_guest_that_hands_the_host_too_much_at_once_traps() {
    let (fixture, echo) = Fixture::of("echo").await;
    let Outcome::Trapped { message, .. } = fixture.call(&echo, "shout", "{}").await.outcome else {
        panic!("not trapped")
    };
    assert!(
        message.contains("too much data is being copied"),
        "{message}"
    );
}

#[tokio::test]
async fn a_tools_own_errors_and_segments_are_returned() {
    let (fixture, echo) = Fixture::of("echo").await;
    assert_eq!(
        failed(&fixture.call(&echo, "denied", "{}").await),
        ToolError::Denied
    );
    let later = fixture.call(&echo, "later", "{}").await.outcome;
    assert_eq!(
        later,
        Outcome::Returned(Ok(Progress::Later {
            after_ms: 1_000,
            state: b"state".to_vec()
        }))
    );
}

#[tokio::test]
async fn a_counter_in_a_static_never_gets_above_one() {
    let (fixture, counter) = Fixture::of("counter").await;
    for _ in 0..50 {
        assert_eq!(done(&fixture.call(&counter, "counter", "{}").await), "1");
    }
}

#[tokio::test]
async fn a_read_only_folder_can_be_read_and_not_written() {
    let (fixture, echo) = Fixture::of("echo").await;
    let folder = fixture.folder.path().join("data");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("file.txt"), "before").unwrap();
    let bound = |access| Bound {
        directories: vec![DirectoryGrant::whole(&folder, "/data", access)],
        ..Bound::default()
    };
    let read_only = bound(Access::ReadOnly);
    assert_eq!(
        done(&fixture.call_bound(&echo, &read_only, "read", "{}").await),
        "before"
    );
    assert!(matches!(
        failed(&fixture.call_bound(&echo, &read_only, "write", "x").await),
        ToolError::Failed(_)
    ));
    assert_eq!(
        std::fs::read_to_string(folder.join("file.txt")).unwrap(),
        "before"
    );
    assert_eq!(
        done(
            &fixture
                .call_bound(&echo, &bound(Access::ReadWrite), "write", "after")
                .await
        ),
        "written"
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("file.txt")).unwrap(),
        "after"
    );
    assert!(
        matches!(
            failed(&fixture.call(&echo, "read", "{}").await),
            ToolError::Failed(_)
        ),
        "without a folder there is no file"
    );
}

#[tokio::test]
async fn a_granted_folder_that_is_gone_is_the_hosts_fault() {
    let (fixture, echo) = Fixture::of("echo").await;
    let path = fixture.folder.path().join("gone");
    let gone = DirectoryGrant::whole(&path, "/data", Access::ReadOnly);
    assert!(matches!(
        fixture.runtime.open_folders([&gone], &[]),
        Err(FolderError::Unusable { .. })
    ));
    let bound = Bound {
        directories: vec![gone],
        ..Bound::default()
    };
    let read = async || {
        fixture
            .call_in_open_folders(&echo, &bound, tool_call("read", "{}"), &Arc::default())
            .await
    };
    // It was never opened.
    assert_faulted(&read().await.outcome);
    std::fs::create_dir(&path).unwrap();
    // It was not opened at the start.
    assert_faulted(&read().await.outcome);
    fixture
        .runtime
        .open_folders(&bound.directories, &[])
        .unwrap();
    assert!(
        matches!(failed(&read().await), ToolError::Failed(_)),
        "there is no file in it"
    );
    std::fs::remove_dir(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    // Another folder has its name.
    assert_faulted(&read().await.outcome);
}

#[tokio::test]
async fn a_tool_sees_the_variables_that_its_call_is_bound_to_and_the_ledger_their_names() {
    let (fixture, reach) = Fixture::of("reach").await;
    let variables = || {
        [
            ("LANG".to_owned(), "en".to_owned()),
            ("ZONE".to_owned(), "UTC".to_owned()),
        ]
        .into()
    };
    let withheld = |rule| {
        vec![Ruling {
            capability: "env.read".to_owned(),
            allowed: false,
            rule,
        }]
    };
    let granted = Bound {
        environment: variables(),
        ..Bound::default()
    };
    let not_asked = Bound {
        rulings: withheld(Rule::NotAsked),
        ..Bound::default()
    };
    let not_granted = Bound {
        rulings: withheld(Rule::NotGranted),
        ..Bound::default()
    };
    for (bound, expected, decided) in [
        (
            granted,
            r#"[("LANG", "en"), ("ZONE", "UTC")] [] None"#,
            Some((BoundaryVerdict::Granted, Rule::Granted, "LANG, ZONE")),
        ),
        (
            not_asked,
            "[] [] None",
            Some((
                BoundaryVerdict::Refused,
                Rule::NotAsked,
                "wasi:cli/environment.get-environment",
            )),
        ),
        (not_granted, "[] [] None", None),
        (Bound::default(), "[] [] None", None),
    ] {
        let called = fixture
            .call_bound(&reach, &bound, "environment", "{}")
            .await;
        assert_eq!(done(&called), expected);
        let decisions = &called.decided.decisions;
        let reported: Vec<_> = decisions
            .iter()
            .map(|it| {
                (
                    it.capability.as_str(),
                    (it.verdict, it.rule, it.detail.as_str()),
                )
            })
            .collect();
        assert_eq!(
            reported,
            decided
                .map(|decided| ("env.read", decided))
                .into_iter()
                .collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn what_was_not_granted_is_denied_by_type_and_noted_for_the_operator() {
    let (fixture, reach) = Fixture::of("reach").await;
    let called = fixture.call(&reach, "reach", "{}").await;
    let answers = done(&called);
    for expected in [
        "Some(Error::AccessDenied) | ",
        "\"access-denied\"",
        " | 0 | true | ErrorCode::HttpRequestDenied",
    ] {
        assert!(
            answers.contains(expected),
            "{answers} does not contain {expected}"
        );
    }
    assert_eq!(
        called
            .decided
            .decisions
            .iter()
            .map(|decision| format!("{} {}", decision.times, decision.detail))
            .collect::<Vec<_>>(),
        [
            "1 wasi:keyvalue/store.open `secrets`",
            "3 wasi:sockets/tcp-create-socket.create-tcp-socket",
            "1 wasi:http/outgoing-handler.handle `169.254.169.254`",
        ]
    );
}

#[tokio::test]
async fn a_flood_of_output_is_cut_and_counted_and_cannot_move_a_cursor() {
    let (fixture, echo) = Fixture::of("echo").await;
    let called = fixture.call(&echo, "flood", "{}").await;
    assert_eq!(done(&called), "flooded");
    let kept: usize = called.logs.iter().map(|line| line.message.len()).sum();
    assert!(
        kept <= 2 * (64 << 10) && called.usage.log_bytes_dropped > 1 << 20,
        "{kept}, {:?}",
        called.usage
    );
    assert!(
        called
            .logs
            .iter()
            .all(|line| !line.message.contains('\u{1b}'))
    );
}

#[tokio::test]
async fn a_panic_traps_with_the_guests_own_words() {
    let (fixture, trap) = Fixture::of("trap").await;
    let Outcome::Trapped { message, backtrace } =
        fixture.call(&trap, "trap", r#"{"x":1}"#).await.outcome
    else {
        panic!("not trapped")
    };
    assert!(
        message.contains(r#"nothing works here: {"x":1}"#) && message.contains("unreachable"),
        "{message}"
    );
    assert!(backtrace.contains("wasm"), "{backtrace}");
}
