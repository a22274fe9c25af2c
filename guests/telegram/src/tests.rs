//! The connector against a script in the server's place.

use super::*;
use agent_host_sdk::harness::{Exchange, logged, serve_http};
use agent_host_sdk::http::{HttpError, Outgoing, Response};
use agent_host_sdk::{Body, Said};

fn ok(result: &Value) -> Response {
    Response::new(200).with_json(&json!({ "ok": true, "result": result }))
}

fn refused(status: u16, description: &str, parameters: &Value) -> Response {
    Response::new(status).with_json(&json!({
        "ok": false, "error_code": status, "description": description, "parameters": parameters,
    }))
}

fn method(request: &Outgoing) -> String {
    request
        .path()
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn message(update: i64, chat: i64, text: &str) -> Value {
    json!({
        "update_id": update,
        "message": {
            "message_id": 7, "date": 1_700_000_000, "text": text,
            "from": { "id": 42, "is_bot": false, "first_name": "Ada", "last_name": "L" },
            "chat": { "id": chat, "type": if chat < 0 { "group" } else { "private" } },
        },
    })
}

fn pressed() -> Value {
    json!({ "update_id": 5, "callback_query": {
        "id": "q1", "data": "a:1",
        "from": { "id": 42, "first_name": "Ada" },
        "message": { "message_id": 7, "date": 1, "chat": { "id": 42, "type": "private" } },
    }})
}

#[test]
fn a_poll_brings_messages_and_goes_on_after_the_last_update() {
    let server = serve_http(|_| Ok(ok(&json!([message(10, 42, "hi"), message(12, -5, "all")]))));
    let mut exchange = Exchange::of(Telegram);
    let batch = exchange.poll().unwrap();
    assert_eq!(batch.cursor.as_deref(), Some("13"));
    let [private, group] = &batch.messages[..] else {
        panic!("{batch:?}")
    };
    assert_eq!(private.said, Said::Text("hi".to_owned()));
    assert_eq!(private.id, "update-10");
    assert_eq!(private.sender_name.as_deref(), Some("Ada L"));
    assert_eq!((private.chat.as_str(), &private.group), ("42", &None));
    assert_eq!(group.group.as_deref(), Some("-5"));
    assert_eq!(group.sender, "42");
    exchange.poll().unwrap();
    let asked: Value = server.requests()[1].json().unwrap();
    assert_eq!(asked["offset"], json!(13));
    assert_eq!(
        server.requests()[1].path(),
        "/bot{{secret.telegram}}/getUpdates"
    );
}

#[test]
fn a_pressed_button_is_read_without_a_request() {
    let server = serve_http(|_| Ok(ok(&json!([pressed()]))));
    let delivery = Delivery {
        body: pressed().to_string().into_bytes(),
        ..Delivery::default()
    };
    let mut exchange = Exchange::of(Telegram);
    let received = exchange.receive(&delivery).unwrap();
    assert!(server.requests().is_empty(), "{:?}", server.requests());
    let polled = exchange.poll().unwrap();
    let asked: Vec<String> = server.requests().iter().map(method).collect();
    assert_eq!(asked, ["getUpdates"]);
    assert_eq!(received.messages, polled.messages);
    let message = &received.messages[0];
    assert_eq!(message.said, Said::Button("a:1".to_owned()));
    assert_eq!(message.acknowledge.as_deref(), Some("q1"));
}

#[test]
fn an_acknowledgement_is_one_request_and_has_no_id() {
    let server = serve_http(|_| Ok(ok(&json!(true))));
    let acknowledgement = Body::Acknowledgement("q1".to_owned());
    let id = Exchange::of(Telegram).deliver("42", acknowledgement);
    assert_eq!(id.unwrap(), "");
    let requests = server.requests();
    let [request] = &requests[..] else {
        panic!("{requests:?}")
    };
    assert_eq!(method(request), "answerCallbackQuery");
    let asked: Value = request.json().unwrap();
    assert_eq!(asked, json!({ "callback_query_id": "q1" }));
}

#[test]
fn messages_of_bots_and_joins_are_left_out() {
    let mut of_bot = message(1, 42, "hi");
    of_bot["message"]["from"]["is_bot"] = json!(true);
    let mut joined = message(2, -5, "");
    joined["message"]["new_chat_members"] = json!([{ "id": 9 }]);
    let updates = json!([of_bot, joined, { "update_id": 3, "poll": {} }]);
    let _server = serve_http(move |_| Ok(ok(&updates)));
    let batch = Exchange::of(Telegram).poll().unwrap();
    assert!(batch.messages.is_empty(), "{batch:?}");
    assert_eq!(batch.cursor.as_deref(), Some("4"));
}

#[test]
fn files_come_with_their_handles_and_are_got_by_them() {
    let mut update = message(1, 42, "");
    update["message"]["caption"] = json!("see");
    update["message"]["document"] = json!({
        "file_id": "F1", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 3,
    });
    update["message"]["photo"] = json!([{ "file_id": "S" }, { "file_id": "L", "file_size": 9 }]);
    let _server = serve_http(move |request| {
        Ok(match method(request).as_str() {
            "getUpdates" => ok(&json!([update])),
            "getFile" => ok(&json!({ "file_path": "docs/a.pdf" })),
            _ if request.path() == "/file/bot{{secret.telegram}}/docs/a.pdf" => {
                Response::new(200).with_body(*b"pdf")
            }
            _ => Response::new(404),
        })
    });
    let mut exchange = Exchange::of(Telegram);
    let batch = exchange.poll().unwrap();
    let handles: Vec<&str> = batch.messages[0]
        .attachments
        .iter()
        .map(|file| file.handle.as_str())
        .collect();
    assert_eq!(handles, ["L", "F1"]);
    assert_eq!(batch.messages[0].said, Said::Text("see".to_owned()));
    assert_eq!(exchange.fetch("F1").unwrap(), b"pdf");
}

#[test]
fn a_text_is_sent_with_marks_and_without_where_they_are_not_understood() {
    let server = serve_http(|request| {
        let asked: Value = request.json().unwrap();
        Ok(
            if asked.get("parse_mode").is_some() && asked["text"].as_str() == Some("<b>x</b>") {
                refused(400, "Bad Request: can't parse entities", &json!({}))
            } else {
                ok(&json!({ "message_id": 99 }))
            },
        )
    });
    let exchange = Exchange::of(Telegram);
    assert_eq!(exchange.send("42", "*hi*").unwrap(), "99");
    assert_eq!(exchange.send("42/3", "**x**").unwrap(), "99");
    let last: Value = server.requests().last().unwrap().json().unwrap();
    assert_eq!(last["text"], json!("x"));
    assert_eq!(last["message_thread_id"], json!(3));
}

#[test]
fn a_question_has_buttons_and_edits_and_typing_are_calls_of_their_own() {
    let server = serve_http(|request| {
        Ok(match method(request).as_str() {
            "editMessageText" => refused(400, "Bad Request: message is not modified", &json!({})),
            _ => ok(&json!({ "message_id": 5 })),
        })
    });
    let exchange = Exchange::of(Telegram);
    exchange
        .ask("42", "Sure?", &[("Yes", "a:1"), ("No", "a:2")])
        .unwrap();
    let asked: Value = server.requests()[0].json().unwrap();
    assert_eq!(
        asked["reply_markup"]["inline_keyboard"][0][1],
        json!({ "text": "No", "callback_data": "a:2" })
    );
    exchange.deliver("42", Body::Typing).unwrap();
    assert_eq!(method(&server.requests()[1]), "sendChatAction");
    let edit = Body::Edit {
        id: "5".to_owned(),
        text: "same".to_owned(),
    };
    assert_eq!(exchange.deliver("42", edit).unwrap(), "5");
}

#[test]
fn failures_say_whether_anything_was_done() {
    let none = json!({});
    for (answer, expected) in [
        (
            refused(429, "Too Many Requests", &json!({ "retry_after": 3 })),
            ConnectorError::RetryLater(3_000),
        ),
        (
            refused(401, "Unauthorized", &none),
            ConnectorError::Unauthorised("Unauthorized".to_owned()),
        ),
        (
            refused(403, "Forbidden: bot was blocked by the user", &none),
            ConnectorError::Rejected("Forbidden: bot was blocked by the user".to_owned()),
        ),
        (
            Response::new(502),
            ConnectorError::Unknown("the server answered 502 without a result".to_owned()),
        ),
        (Response::new(503), ConnectorError::RetryLater(5_000)),
    ] {
        let _server = serve_http(move |_| Ok(answer.clone()));
        let error = Exchange::of(Telegram).send("42", "hi").unwrap_err();
        assert_eq!(error, expected);
    }
    let _server = serve_http(|_| {
        Err(HttpError::TimedOut {
            authority: "api.telegram.org".to_owned(),
        })
    });
    let error = Exchange::of(Telegram).send("42", "hi").unwrap_err();
    assert!(matches!(error, ConnectorError::Unknown(_)), "{error:?}");
    let error = Exchange::of(Telegram).poll().unwrap_err();
    assert!(matches!(error, ConnectorError::RetryLater(_)), "{error:?}");
}

#[test]
fn a_failure_that_passes_is_logged_as_what_it_is() {
    let told = || -> Vec<String> { logged().into_iter().map(|(_, told)| told).collect() };
    let server = serve_http(|_| {
        Err(HttpError::Unreachable {
            authority: "api.telegram.org".to_owned(),
        })
    });
    let later = ConnectorError::RetryLater(5_000);
    assert_eq!(Exchange::of(Telegram).poll().unwrap_err(), later);
    assert_eq!(Exchange::of(Telegram).send("42", "hi").unwrap_err(), later);
    let reasons = told();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    let are_said = reasons.iter().all(|it| it.contains("cannot be reached"));
    assert!(are_said, "{reasons:?}");
    drop(server);
    let another = "Conflict: terminated by other getUpdates request";
    for (answer, expected) in [
        (refused(409, another, &json!({})), another),
        (Response::new(503), "the server answered 503"),
        (
            Response::new(502),
            "the server answered 502 without a result",
        ),
    ] {
        let _server = serve_http(move |_| Ok(answer.clone()));
        assert_eq!(Exchange::of(Telegram).poll().unwrap_err(), later);
        assert_eq!(told(), [expected]);
    }
}

#[test]
fn a_file_of_a_server_in_trouble_is_tried_again_and_one_that_is_gone_is_not() {
    for (status, is_later) in [(502, true), (429, true), (404, false)] {
        let _server = serve_http(move |request| {
            Ok(match method(request).as_str() {
                "getFile" => ok(&json!({ "file_path": "a.pdf" })),
                _ => Response::new(status),
            })
        });
        let error = Exchange::of(Telegram).fetch("F1").unwrap_err();
        let is_as_expected = matches!(error, ConnectorError::RetryLater(_)) == is_later;
        assert!(is_as_expected, "{status}: {error:?}");
    }
}

#[test]
fn an_answer_that_says_null_where_it_says_nothing_is_read() {
    let said = json!({ "ok": true, "result": { "message_id": 4 }, "description": null });
    let _server = serve_http(move |request| {
        let edited = json!({ "ok": true, "result": null, "parameters": null });
        Ok(
            Response::new(200).with_json(match method(request).as_str() {
                "editMessageText" => &edited,
                _ => &said,
            }),
        )
    });
    let exchange = Exchange::of(Telegram);
    assert_eq!(exchange.send("42", "hi").unwrap(), "4");
    let edit = Body::Edit {
        id: "4".to_owned(),
        text: "hi there".to_owned(),
    };
    assert_eq!(exchange.deliver("42", edit).unwrap(), "4");
}
