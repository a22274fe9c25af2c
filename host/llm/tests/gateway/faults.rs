//! Faults of providers and of the way to them. The numbers are those of the project's list of
//! faults.

use crate::server::{Act, End, Server};
use crate::setting::{
    CANARY, FINISH, Kept, WatchedCall, asked, broken, call, completed, config, error_of, gateway,
    good, prompt, reason, usage, whole, words,
};
use agent_host_llm::fair_semaphore::Party;
use agent_host_llm::{
    Afforded, AttemptBudget, Completion, Failure, Gateway, Measuring, NoDeltas, Reason, Unbudgeted,
};
use domain::message::Part;
use domain::model::{Prompt, Usage};
use domain::operation::Attempt;
use futures::future::join_all;
use serde_json::json;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

fn answer(status: u16, headers: Vec<(&'static str, String)>) -> Act {
    Act::Answer(
        status,
        headers,
        b"{\"error\": {\"message\": \"no\"}}".to_vec(),
    )
}

/// An answer in one chunk, of this content type.
fn typed(content_type: &str, body: &str) -> Act {
    let header = ("content-type", content_type.to_owned());
    Act::Answer(200, vec![header], body.as_bytes().to_vec())
}

fn code(completion: &Completion) -> &'static str {
    completion.result.as_ref().unwrap_err().code()
}

/// A port at which nothing listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn fault_23_a_provider_that_cannot_be_reached_is_tried_again_and_then_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let without_tls = format!("https://{}", listener.local_addr().unwrap());
    let serving = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    };
    let asking = async {
        for (url, reported) in [
            (nobody().await, "onnection refused"),
            ("http://model.invalid".to_owned(), ""),
            (without_tls, ""),
        ] {
            let completion = completed(config("openai-compatible", &[&url])).await;
            assert_eq!(reason(&completion), Some(Reason::Connect), "{completion:?}");
            assert_eq!(completion.attempts.len(), 3, "{url}");
            for attempt in &completion.attempts {
                assert_eq!(attempt.usage, Some(Usage::default()), "{url}");
            }
            assert!(
                error_of(&completion, 0).contains(reported),
                "{completion:?}"
            );
            let failure = completion.result.unwrap_err();
            let reported = (failure.code(), failure.retryable());
            assert_eq!(reported, ("model-unavailable", true));
        }
    };
    tokio::select! {
        () = asking => {}
        () = serving => unreachable!("it serves for ever"),
    }
}

#[tokio::test]
async fn fault_23_a_provider_that_keeps_failing_is_left_alone_and_then_tried_once() {
    let server = Server::start(vec![
        answer(500, Vec::new()),
        answer(500, Vec::new()),
        answer(500, Vec::new()),
        good(&["hi"]),
    ])
    .await;
    let mut config = config("openai-compatible", &[&server.url]);
    config["breaker"] = json!({"failuresMax": 3, "openMs": 500});
    let gateway = gateway(config);
    assert_eq!(
        code(&gateway.complete(&prompt(), &NoDeltas).await),
        "model-unavailable"
    );
    let refused = gateway.complete(&prompt(), &NoDeltas).await;
    assert_eq!(reason(&refused), Some(Reason::CircuitOpen));
    assert_eq!((refused.attempts.len(), server.requests().len()), (0, 3));
    tokio::time::sleep(Duration::from_millis(510)).await;
    assert!(gateway.complete(&prompt(), &NoDeltas).await.result.is_ok());
}

#[tokio::test]
async fn fault_24_a_provider_that_limits_is_left_alone_as_long_as_it_asks() {
    let started = Instant::now();
    let (completion, ..) = asked(vec![
        answer(429, vec![("retry-after", "1".to_owned())]),
        good(&["hi"]),
    ])
    .await;
    assert!(completion.result.is_ok());
    assert!(
        started.elapsed() >= Duration::from_millis(990)
            && started.elapsed() < Duration::from_secs(3)
    );
    assert_eq!(
        completion.attempts[0].usage,
        Some(Usage::default()),
        "a refusal costs nothing"
    );
}

#[tokio::test]
async fn fault_24_other_calls_of_the_model_wait_too() {
    let server = Server::start(vec![
        answer(429, vec![("retry-after", "1".to_owned())]),
        good(&["hi"]),
    ])
    .await;
    let mut config = config("openai-compatible", &[&server.url]);
    config["retry"]["attemptsMax"] = json!(1);
    let gateway = gateway(config);
    assert_eq!(
        code(&gateway.complete(&prompt(), &NoDeltas).await),
        "model-rate-limited"
    );
    let started = Instant::now();
    assert!(gateway.complete(&prompt(), &NoDeltas).await.result.is_ok());
    assert!(started.elapsed() >= Duration::from_millis(900));
}

#[tokio::test]
async fn fault_24_a_date_to_come_back_at_is_read_by_the_providers_own_clock() {
    let date = |second: u32| format!("Sun, 06 Nov 1994 08:49:{second} GMT");
    let started = Instant::now();
    let (completion, ..) = asked(vec![
        answer(429, vec![("date", date(36)), ("retry-after", date(37))]),
        good(&["hi"]),
    ])
    .await;
    assert!(completion.result.is_ok());
    assert!(
        started.elapsed() >= Duration::from_millis(990)
            && started.elapsed() < Duration::from_secs(3)
    );
    // Of a clock that is not shown nothing is believed: the pause is that of any limit without a
    // time.
    let (completion, server, _) = asked(vec![answer(
        429,
        vec![("retry-after", "Fri, 06 Nov 2893 08:49:37 GMT".to_owned())],
    )])
    .await;
    assert_eq!(
        (code(&completion), server.requests().len()),
        ("model-rate-limited", 3)
    );
}

#[tokio::test]
async fn fault_24_a_limit_without_a_time_is_met_with_backoff() {
    let (completion, server, _) = asked(vec![answer(429, Vec::new())]).await;
    assert_eq!(
        (code(&completion), server.requests().len()),
        ("model-rate-limited", 3)
    );
    let (completion, ..) = asked(vec![
        answer(429, Vec::new()),
        answer(429, Vec::new()),
        good(&["hi"]),
    ])
    .await;
    assert!(completion.result.is_ok());
}

#[tokio::test]
async fn fault_24_a_provider_that_asks_for_too_much_patience_is_not_asked_again() {
    let started = Instant::now();
    let (completion, server, _) =
        asked(vec![answer(429, vec![("retry-after", "3600".to_owned())])]).await;
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(server.requests().len(), 1);
    assert!(matches!(
        completion.result,
        Err(Failure::RateLimited {
            retry_after_ms: Some(3_600_000),
            ..
        })
    ));
}

#[tokio::test]
async fn fault_24_while_a_provider_wants_much_patience_the_fallback_is_asked_at_once() {
    let limiting = Server::start(vec![answer(429, vec![("retry-after", "3600".to_owned())])]).await;
    let other = Server::start(vec![good(&["hi"])]).await;
    let gateway = gateway(config("openai-compatible", &[&limiting.url, &other.url]));
    for attempts in [2, 1] {
        let completion = gateway.complete(&prompt(), &NoDeltas).await;
        assert_eq!(
            (
                completion.result.unwrap().provider.as_str(),
                completion.attempts.len()
            ),
            ("q", attempts)
        );
    }
    assert_eq!(limiting.requests().len(), 1);
}

#[tokio::test]
async fn fault_24_statuses_that_pass_are_tried_again_and_others_are_not() {
    for status in [408, 409, 425, 500, 502, 503, 529] {
        let (completion, server, _) = asked(vec![answer(status, Vec::new()), good(&["hi"])]).await;
        assert!(completion.result.is_ok(), "{status}");
        assert_eq!(server.requests().len(), 2, "{status}");
    }
    for status in [301, 400, 401, 403, 404, 422] {
        let (completion, server, _) = asked(vec![
            answer(status, vec![("location", "/elsewhere".to_owned())]),
            good(&["hi"]),
        ])
        .await;
        assert_eq!(
            (code(&completion), server.requests().len()),
            ("model-refused", 1),
            "{status}"
        );
    }
}

#[tokio::test]
async fn fault_24_only_an_answer_that_says_so_has_used_nothing() {
    let nothing = Some(Usage::default());
    for (status, used) in [
        (408, nothing),
        (429, nothing),
        (503, nothing),
        (529, nothing),
        (500, None),
        (502, None),
        (504, None),
    ] {
        let (completion, ..) = asked(vec![answer(status, Vec::new()), good(&["hi"])]).await;
        assert!(completion.result.is_ok(), "{status}");
        assert_eq!(completion.attempts[0].usage, used, "{status}");
        assert_eq!(completion.attempts[1].usage, usage(7, 2, 4), "{status}");
    }
}

/// At most so many calls are made at the same time, and the last one waits for longer than a call
/// may take.
#[tokio::test]
async fn fault_24_waiting_for_a_place_takes_nothing_of_a_calls_time() {
    let slow = Act::Slow(Duration::from_millis(300), Box::new(good(&["hi"])));
    let server = Server::start(vec![slow]).await;
    let mut config = config("openai-compatible", &[&server.url]);
    config["providers"]["p"]["concurrentMax"] = json!(1);
    config["timeouts"]["totalMs"] = json!(500);
    let gateway = gateway(config);
    let prompt = prompt();
    let started = Instant::now();
    let calls = (0..3).map(|_| gateway.complete(&prompt, &NoDeltas));
    for completion in join_all(calls).await {
        assert!(completion.result.is_ok(), "{completion:?}");
    }
    assert!(started.elapsed() >= Duration::from_millis(900));
}

/// A payer that notes for how long it was measured, and for how long it was to be quiet.
#[derive(Debug, Default)]
struct Timed {
    measured: Mutex<Vec<Duration>>,
    quiet_ms: Mutex<Vec<Option<u64>>>,
}

/// One measurement of a payer's.
struct Measured<'a> {
    of: &'a Timed,
    since: Instant,
}

impl Drop for Measured<'_> {
    fn drop(&mut self) {
        self.of.measured.lock().unwrap().push(self.since.elapsed());
    }
}

impl AttemptBudget for Timed {
    fn first(&self) -> u32 {
        0
    }

    fn afford<'a>(&'a self, ended: &'a [Attempt]) -> Afforded<'a> {
        Box::pin(std::future::ready(Ok(u32::try_from(ended.len()).unwrap())))
    }

    fn party(&self) -> Party {
        Unbudgeted.party()
    }

    fn measure(&self, quiet_ms: Option<u64>) -> Measuring<'_> {
        self.quiet_ms.lock().unwrap().push(quiet_ms);
        Box::new(Measured {
            of: self,
            since: Instant::now(),
        })
    }
}

async fn paid_by(payer: &Timed, gateway: &Gateway, model: &str) -> Completion {
    let prompt = Prompt {
        model: Some(model.to_owned()),
        ..prompt()
    };
    gateway
        .complete_leaving(&prompt, &NoDeltas, &Kept::default(), payer)
        .await
}

#[tokio::test]
async fn fault_24_neither_a_pause_nor_waiting_for_a_place_is_measured() {
    // The first call meets a limit and pauses for a second. Of the others, which ask another model
    // of the provider, the second waits for the first.
    let limited = answer(429, vec![("retry-after", "1".to_owned())]);
    let slow = Act::Slow(Duration::from_millis(600), Box::new(good(&["hi"])));
    let server = Server::start(vec![limited, slow]).await;
    let mut config = config("openai-compatible", &[&server.url]);
    config["providers"]["p"]["concurrentMax"] = json!(1);
    config["models"]["second"] = json!({"provider": "p", "model": "second-1"});
    config["timeouts"]["firstTokenMs"] = json!(5_000);
    let gateway = gateway(config);
    let payers = [Timed::default(), Timed::default(), Timed::default()];
    let [first, second, third] = &payers;
    let (a, b, c) = tokio::join!(
        paid_by(first, &gateway, "m"),
        paid_by(second, &gateway, "second"),
        paid_by(third, &gateway, "second")
    );
    assert!(
        a.result.is_ok() && b.result.is_ok() && c.result.is_ok(),
        "{a:?} {b:?} {c:?}"
    );
    for (payer, attempts) in payers.iter().zip([2, 1, 1]) {
        let measured = payer.measured.lock().unwrap();
        assert_eq!(measured.len(), attempts, "{measured:?}");
        let sum: Duration = measured.iter().sum();
        assert!(
            sum >= Duration::from_millis(590) && sum < Duration::from_millis(1_100),
            "{measured:?}"
        );
    }
}

#[tokio::test]
async fn fault_25_a_server_that_says_nothing_is_given_up_and_asked_again() {
    let (completion, server, watcher) = asked(vec![Act::Hang, good(&["hi"])]).await;
    assert!(completion.result.is_ok());
    assert_eq!(completion.attempts.len(), 2);
    assert!(error_of(&completion, 0).contains("nothing came in time"));
    assert_eq!(
        completion.attempts[0].usage, None,
        "it may have worked: the reservation is charged"
    );
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.body["stream"] == json!(true))
    );
    assert_eq!(
        watcher.reported().len(),
        1,
        "under the number of the second attempt: {:?}",
        watcher.reported()
    );
    assert!(matches!(watcher.reported()[0], WatchedCall::Delta(1, 0, _)));
    let (completion, ..) = asked(vec![Act::events([], End::Stall)]).await;
    assert_eq!(reason(&completion), Some(Reason::FirstToken));
}

#[tokio::test]
async fn fault_25_a_stream_that_stalls_is_discarded_and_asked_for_in_one_piece() {
    let (completion, server, watcher) = asked(vec![
        broken(&["half ", "a"], End::Stall),
        whole("all of it"),
    ])
    .await;
    assert_eq!(completion.attempts.len(), 2);
    assert!(error_of(&completion, 0).contains("stopped half-way"));
    assert_eq!(completion.result.unwrap().parts, [Part::text("all of it")]);
    assert!(watcher.reported().contains(&WatchedCall::Discarded(0)));
    assert_eq!(watcher.text(), "all of it");
    assert_eq!(server.requests()[1].body.get("stream"), None);
}

#[tokio::test]
async fn fault_25_only_an_attempt_in_one_piece_is_measured_as_quiet() {
    let server = Server::start(vec![broken(&["half"], End::Cut), whole("all of it")]).await;
    let gateway = gateway(config("openai-compatible", &[&server.url]));
    let payer = Timed::default();
    let completion = paid_by(&payer, &gateway, "m").await;
    assert!(completion.result.is_ok(), "{completion:?}");
    assert_eq!(*payer.quiet_ms.lock().unwrap(), [None, Some(2_000)]);
}

#[tokio::test]
async fn fault_25_the_total_time_bounds_everything() {
    let server = Server::start(vec![Act::Hang]).await;
    let mut config = config("openai-compatible", &[&server.url, &server.url]);
    config["timeouts"] = json!({"firstTokenMs": 60_000, "totalMs": 250});
    let started = Instant::now();
    let completion = gateway(config).complete(&prompt(), &NoDeltas).await;
    assert_eq!(reason(&completion), Some(Reason::Deadline));
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(completion.attempts.len(), 1);
}

#[tokio::test]
async fn a_stream_that_is_cut_never_becomes_a_reply() {
    for end in [End::Cut, End::Clean] {
        let (completion, server, watcher) =
            asked(vec![broken(&["half"], end), whole("all of it")]).await;
        assert_eq!(
            completion.result.unwrap().parts,
            [Part::text("all of it")],
            "{end:?}"
        );
        assert_eq!(
            (server.requests().len(), watcher.text().as_str()),
            (2, "all of it")
        );
        // A server that always streams may answer so, and what it cut off is no reply then either.
        let (completion, ..) = asked(vec![broken(&["half"], end)]).await;
        assert!(completion.result.is_err(), "{end:?}");
    }
    let (completion, ..) = asked(vec![broken(&["half"], End::Cut), Act::Close]).await;
    assert_eq!(
        (code(&completion), completion.attempts.len()),
        ("model-unavailable", 3)
    );
}

#[tokio::test]
async fn an_error_inside_a_stream_breaks_it() {
    let mut events = words(&["half"]);
    events
        .push(json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}).to_string());
    let (completion, _, watcher) = asked(vec![
        Act::events(events.iter().map(String::as_str), End::Clean),
        whole("all"),
    ])
    .await;
    assert!(completion.result.is_ok());
    assert!(error_of(&completion, 0).ends_with("Overloaded"));
    assert!(watcher.reported().contains(&WatchedCall::Discarded(0)));
}

/// Every kind of garbage: what comes, and part of what is said about it.
fn garbage() -> Vec<(Act, &'static str)> {
    let html = typed("text/html", "<html>Sign in</html>");
    let json_as_text = typed("text/plain", "{\"choices\": []}");
    let stream = |bytes: &[u8]| Act::Stream(vec![bytes.to_vec()], End::Clean);
    let more = words(&["more"]).remove(0);
    vec![
        (Act::events(["{\"choices\": [{"], End::Clean), "not JSON"),
        (stream(b"data: \xff\xfe\xfd\n\n"), "not UTF-8"),
        (Act::Flood, "longer than 1 MiB"),
        (html, "wrong content type"),
        (json_as_text, "no choice"),
        (
            Act::events(["{\"hello\": 1}"], End::Clean),
            "without choices",
        ),
        (
            Act::events([more.as_str(), FINISH, more.as_str(), "[DONE]"], End::Clean),
            "goes on after its end",
        ),
        (Act::json(200, &json!({"choices": []})), "no choice"),
        (Act::json(200, &json!([1])), "no choice"),
        (typed("application/json", "{\"choices\""), "not JSON"),
    ]
}

#[tokio::test]
async fn fault_27_garbage_is_a_typed_error_with_a_sample_and_a_second_call_can_mend_it() {
    for (act, problem) in garbage() {
        let started = Instant::now();
        let (completion, server, _) = asked(vec![act.clone(), whole("mended")]).await;
        assert!(started.elapsed() < Duration::from_secs(2), "{problem}");
        assert_eq!(
            completion.result.unwrap().parts,
            [Part::text("mended")],
            "{problem}"
        );
        assert_eq!(server.requests().len(), 2, "{problem}");
        let error = completion.attempts[0].error.clone().unwrap();
        assert!(error.contains(problem), "{error}");
        let (completion, ..) = asked(vec![act]).await;
        let Err(Failure::Garbage { sample, .. }) = completion.result else {
            panic!("garbage, not {:?}", completion.result)
        };
        assert!(sample.chars().count() <= 200);
    }
}

#[tokio::test]
async fn fault_27_a_duplicated_chunk_and_an_index_out_of_order_do_not_spoil_calls() {
    let chunk = |index: u32, id: &str| {
        let call = json!({"index": index, "id": id, "type": "function", "function": {"name": "look", "arguments": "{\"x\":1}"}});
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).to_string()
    };
    let first = chunk(0, "a");
    let second = chunk(1, "b");
    let events = [
        second.as_str(),
        &first,
        &first,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "[DONE]",
    ];
    let (completion, ..) = asked(vec![Act::events(events, End::Clean)]).await;
    let calls = ["a", "b"].map(|id| call(id, "look", "{\"x\":1}"));
    assert_eq!(completion.result.unwrap().parts, calls);
}

#[tokio::test]
async fn fault_27_a_reply_in_one_piece_may_not_be_endless() {
    let text = "x".repeat(33 << 20);
    let (completion, ..) = asked(vec![whole(&text)]).await;
    let Err(Failure::Garbage { problem, .. }) = completion.result else {
        panic!("garbage")
    };
    assert!(problem.contains("32 MiB"), "{problem}");
}

#[tokio::test]
async fn a_reply_that_could_not_be_stored_is_garbage_and_is_asked_for_again() {
    let reply = |own: serde_json::Value, text: &str| {
        let message = json!({ "role": "assistant", "content": text, "own": own });
        let body =
            json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
        Act::json(200, &body)
    };
    let deep = (0..118).fold(json!(1), |within, _| json!([within]));
    for (unkept, problem) in [
        (reply(deep, "hi"), "nested deeper than 64"),
        (reply(json!(1), &"x".repeat(9 << 20)), "larger than 8 MiB"),
    ] {
        let (completion, ..) = asked(vec![unkept, whole("mended")]).await;
        assert!(completion.result.is_ok(), "{problem}: {completion:?}");
        let first = error_of(&completion, 0);
        assert!(
            completion.attempts.len() == 2 && first.contains(problem),
            "{problem}: {first}"
        );
    }
}

#[tokio::test]
async fn a_fallback_is_asked_when_the_attempts_are_used_up() {
    let bad = Server::start(vec![answer(500, Vec::new())]).await;
    let better = Server::start(vec![good(&["hi"])]).await;
    let completion = completed(config("openai-compatible", &[&bad.url, &better.url])).await;
    let reply = completion.result.unwrap();
    assert_eq!(
        (reply.provider.as_str(), reply.model.as_str()),
        ("q", "other-1")
    );
    let providers: Vec<&str> = completion
        .attempts
        .iter()
        .map(|attempt| attempt.provider.as_str())
        .collect();
    assert_eq!(providers, ["p", "p", "p", "q"]);
    let refusing = Server::start(vec![answer(401, Vec::new())]).await;
    let completion = completed(config("openai-compatible", &[&bad.url, &refusing.url])).await;
    assert_eq!(
        (code(&completion), completion.attempts.len()),
        ("model-unavailable", 4),
        "what is said is about the model asked for"
    );
    assert_eq!(
        completion.also_failed,
        ["`other-1` of provider `q` (model-refused)"]
    );
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_told_at_once() {
    let body = json!({"error": {"code": "context_length_exceeded", "message": "too many tokens"}});
    let server = Server::start(vec![Act::json(400, &body)]).await;
    let completion = completed(config("openai-compatible", &[&server.url, &server.url])).await;
    assert_eq!(
        (code(&completion), completion.attempts.len()),
        ("model-prompt-too-long", 1)
    );
}

#[tokio::test]
async fn a_key_never_comes_out_again() {
    let echo = format!("Incorrect API key provided: {CANARY}. Header: Bearer {CANARY}");
    let acts = [
        Act::json(401, &json!({"error": {"message": echo}})),
        Act::Answer(500, Vec::new(), echo.clone().into_bytes()),
        typed("text/html", &echo),
        Act::events(
            [json!({"error": {"message": echo}}).to_string().as_str()],
            End::Clean,
        ),
        Act::events([echo.as_str()], End::Clean),
        typed("application/json", &echo),
    ];
    for act in acts {
        let server = Server::start(vec![act]).await;
        let gateway = gateway(config("openai-compatible", &[&server.url]));
        let completion = gateway.complete(&prompt(), &NoDeltas).await;
        let failure = completion.result.as_ref().unwrap_err();
        let all = format!(
            "{gateway:?} {completion:?} {failure} {} {:?}",
            failure.report(),
            gateway.resolve(None)
        );
        assert!(!all.contains("CANARY"), "{all}");
        assert!(server.requests()[0].head.contains(CANARY), "it was sent");
    }
}

#[tokio::test]
async fn a_key_that_a_good_reply_repeats_is_in_no_message_and_no_delta() {
    let letters: Vec<String> = CANARY.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    let calling = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [
        {"id": "t", "type": "function", "function": {"name": "look", "arguments": json!({"at": CANARY}).to_string()}},
    ]}}]});
    for act in [
        whole(CANARY),
        good(&["you sent ", CANARY]),
        good(&letters),
        good(&["sk-CANARY-", "0123456789 ä", "!"]),
        Act::json(200, &calling),
    ] {
        let (completion, server, watcher) = asked(vec![act]).await;
        let reported = format!("{completion:?} {}", watcher.text());
        assert!(
            completion.result.is_ok() && reported.contains(&"*".repeat(CANARY.len())),
            "{reported}"
        );
        assert!(
            !reported.contains("CANARY") && !reported.contains("0123456789"),
            "{reported}"
        );
        assert!(server.requests()[0].head.contains(CANARY), "it was sent");
    }
}
