//! The connector against a script in the server's place.

use super::*;
use agent_host_sdk::harness::{Exchange, serve_http};
use agent_host_sdk::http::Response;
use agent_host_sdk::{Incoming, Moved, QuotationKind, Said};
use serde_json::json;

fn exchange() -> Exchange<WhatsApp> {
    Exchange::of(WhatsApp).configured(json!({ "phoneNumberId": "123" }))
}

fn call(messages: &Value) -> IncomingCall {
    let value = json!({
        "messaging_product": "whatsapp", "metadata": { "phone_number_id": "123" },
        "contacts": [{ "wa_id": "4912", "profile": { "name": "Ada" } }],
        "messages": messages,
    });
    let body = json!({
        "object": "whatsapp_business_account",
        "entry": [{ "changes": [{ "field": "messages", "value": value }] }],
    });
    IncomingCall {
        body: body.to_string().into_bytes(),
        ..IncomingCall::default()
    }
}

#[test]
fn words_buttons_and_files_are_read() {
    let batch = exchange()
        .receive(&call(&json!([
            { "from": "4912", "id": "w1", "timestamp": "1700000000", "type": "text",
              "text": { "body": "hi" } },
            { "from": "4912", "id": "w2", "timestamp": "1700000001", "type": "interactive",
              "interactive": { "type": "list_reply", "list_reply": { "id": "a:4", "title": "x" } } },
            { "from": "4912", "id": "w3", "timestamp": "1700000002", "type": "document",
              "document": { "id": "m1", "filename": "a.pdf", "mime_type": "application/pdf",
                            "caption": "see" } },
        ])))
        .unwrap();
    let said: Vec<&Said> = batch.messages.iter().map(|message| &message.said).collect();
    assert_eq!(
        said,
        [
            &Said::Text("hi".to_owned()),
            &Said::Button("a:4".to_owned()),
            &Said::Text("see".to_owned())
        ]
    );
    assert_eq!(batch.messages[0].sender_name.as_deref(), Some("Ada"));
    assert_eq!(batch.messages[2].attachments[0].handle, "m1");
}

#[test]
fn every_kind_of_message_is_heard_in_words() {
    let unread = "[a message of a kind that WhatsApp does not pass on]";
    for (kind, content, expected) in [
        (
            "location",
            json!({ "latitude": 59.91, "longitude": 10.75 }),
            "[location 59.91, 10.75]",
        ),
        (
            "location",
            json!({ "latitude": 1.5, "longitude": 2.5, "name": "Opera", "address": "Kirsten 1" }),
            "[location 1.5, 2.5: Opera, Kirsten 1]",
        ),
        (
            "contacts",
            json!([{ "name": { "formatted_name": "Bob" }, "phones": [{ "phone": "+43 1" }] }]),
            "[contact Bob, +43 1]",
        ),
        ("reaction", json!({ "emoji": "👍" }), "[reaction 👍]"),
        (
            "reaction",
            json!({ "message_id": "w" }),
            "[reaction taken back]",
        ),
        (
            "order",
            json!({ "text": "quick", "product_items": [
                { "product_retailer_id": "tea", "quantity": 2, "item_price": 3, "currency": "EUR" },
            ] }),
            "quick\n[order of 2 of tea at 3 EUR]",
        ),
        (
            "interactive",
            json!({ "type": "nfm_reply", "nfm_reply": { "response_json": "{\"a\":1}" } }),
            "[form {\"a\":1}]",
        ),
        ("button", json!({ "text": "Yes" }), "Yes"),
        ("unsupported", json!({}), unread),
        ("ephemeral", json!({}), unread),
        ("unknown", json!({}), unread),
        // What lacks its content is told of, too.
        ("text", json!({}), unread),
        ("interactive", json!({}), unread),
        (
            "interactive",
            json!({ "type": "call_permission_reply", "call_permission_reply": {} }),
            unread,
        ),
        ("revoke", json!({}), "[took a message back]"),
        (
            "edit",
            json!({ "message": { "type": "text", "text": { "body": "two" } } }),
            "[edited] two",
        ),
    ] {
        let mut message = json!({ "from": "4912", "id": "w1", "timestamp": "1", "type": kind });
        message[kind] = content;
        let batch = exchange().receive(&call(&json!([message]))).unwrap();
        let no_words = [unread, "[reaction", "[took", "[edited]"];
        let said = match no_words.iter().any(|it| expected.starts_with(it)) {
            true => Said::Aside(expected.to_owned()),
            false => Said::Text(expected.to_owned()),
        };
        assert_eq!(batch.messages[0].said, said);
        // A reaction is heard if it is to a message of the business's own.
        assert_eq!(batch.messages[0].overheard, kind == "reaction");
    }
}

#[test]
fn what_is_passed_on_or_replied_to_is_a_quotation() {
    let read = |context: &Value| {
        let message = json!([{
            "from": "4912", "id": "w1", "timestamp": "1", "type": "text",
            "text": { "body": "obey me" }, "context": context,
        }]);
        let mut batch = exchange().receive(&call(&message)).unwrap();
        batch.messages.remove(0)
    };
    for context in [
        json!({ "forwarded": true }),
        json!({ "frequently_forwarded": true }),
    ] {
        let message = read(&context);
        assert_eq!(message.said, Said::Text(String::new()));
        let [quotation] = &message.quotations[..] else {
            panic!("{message:?}")
        };
        assert_eq!(quotation.kind, QuotationKind::Forwarded);
        assert_eq!(quotation.text, "obey me");
    }
    let reply = read(&json!({ "from": "100", "id": "wamid.9" }));
    assert_eq!(reply.said, Said::Text("obey me".to_owned()));
    assert_eq!(reply.replies_to.as_deref(), Some("wamid.9"));
    let product = json!({ "referred_product": { "product_retailer_id": "tea" } });
    let product = read(&product);
    assert_eq!(product.quotations[0].kind, QuotationKind::Quoted);
    assert_eq!(product.quotations[0].text, "[the product tea]");
}

#[test]
fn somebody_with_another_number_is_followed() {
    let reported = json!([{
        "from": "4912", "id": "w1", "timestamp": "1", "type": "system",
        "system": { "body": "A changed", "wa_id": "4913", "type": "user_changed_number" },
    }]);
    let batch = exchange().receive(&call(&reported)).unwrap();
    assert!(batch.messages.is_empty(), "{batch:?}");
    let moved = Moved {
        from: "4912".to_owned(),
        to: "4913".to_owned(),
        is_group: false,
    };
    assert_eq!(batch.moved, [moved]);
    // Nobody but the service says who has another number.
    let mut pretended = reported;
    pretended[0]["type"] = json!("text");
    pretended[0]["text"] = json!({ "body": "hi" });
    let batch = exchange().receive(&call(&pretended)).unwrap();
    assert!(batch.moved.is_empty(), "{batch:?}");
}

#[test]
fn calls_about_another_number_and_reports_are_left_out() {
    let other = Exchange::of(WhatsApp).configured(json!({ "phoneNumberId": "999" }));
    let message = json!([{ "from": "1", "id": "w", "type": "text", "text": { "body": "x" } }]);
    assert!(other.receive(&call(&message)).unwrap().messages.is_empty());
    let mut report = call(&json!([]));
    report.body =
        br#"{"entry":[{"changes":[{"field":"messages","value":{"statuses":[{}]}}]}]}"#.to_vec();
    assert!(exchange().receive(&report).unwrap().messages.is_empty());
}

#[test]
fn every_message_of_the_largest_call_is_read() {
    let message = |number: usize| {
        json!({ "from": "4912", "id": format!("w{number}"), "timestamp": "1700000000",
                "type": "text", "text": { "body": "hi" } })
    };
    let messages: Vec<Value> = (0..1_000).map(message).collect();
    let batch = exchange().receive(&call(&json!(messages))).unwrap();
    assert_eq!(batch.messages.len(), 1_000);
    assert_eq!(batch.messages[999].id, "w999");
}

#[test]
fn a_message_that_was_taken_and_not_delivered_is_told() {
    let mut report = call(&json!([]));
    let failed = json!([
        { "id": "wamid.1", "status": "delivered" },
        { "id": "wamid.2", "status": "failed",
          "errors": [{ "code": 131_047, "title": "Re-engagement message" }] },
    ]);
    let mut body: Value = serde_json::from_slice(&report.body).unwrap();
    body["entry"][0]["changes"][0]["value"]["statuses"] = failed;
    report.body = body.to_string().into_bytes();
    let batch = exchange().receive(&report).unwrap();
    assert!(batch.messages.is_empty());
    let [reported] = &batch.undelivered[..] else {
        panic!("{batch:?}")
    };
    assert_eq!(reported.id, "wamid.2");
    assert!(
        reported.reason.contains("Re-engagement message (131047)"),
        "{reported:?}"
    );
}

#[test]
fn few_choices_are_buttons_and_many_are_a_list() {
    let sent = json!({ "messages": [{ "id": "wamid.1" }] });
    let server = serve_http(move |_| Ok(Response::new(200).with_json(&sent)));
    let exchange = exchange();
    assert_eq!(exchange.send("4912", "**hi**").unwrap(), "wamid.1");
    exchange
        .ask("4912", "Sure?", &[("Yes, of course I am sure", "a:1")])
        .unwrap();
    let many = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    exchange.ask("4912", "Which?", &many).unwrap();
    let sent: Vec<Value> = server
        .requests()
        .iter()
        .map(|it| it.json().unwrap())
        .collect();
    assert_eq!(server.requests()[0].path(), "/v23.0/123/messages");
    assert_eq!(sent[0]["text"]["body"], json!("*hi*"));
    let title = &sent[1]["interactive"]["action"]["buttons"][0]["reply"]["title"];
    assert_eq!(title, &json!("Yes, of course I am…"));
    assert_eq!(sent[2]["interactive"]["type"], json!("list"));
}

#[test]
fn failures_say_whether_anything_was_done() {
    let no = |status: u16, code: i64| {
        let error = json!({ "error": { "message": "no", "code": code } });
        Response::new(status).with_json(&error)
    };
    for (answer, expected) in [
        (no(401, 190), ConnectorError::Unauthorised("no".to_owned())),
        (no(403, 200), ConnectorError::Unauthorised("no".to_owned())),
        (no(400, 131_047), ConnectorError::Rejected("no".to_owned())),
        (no(400, 130_429), ConnectorError::RetryLater(60_000)),
        (no(500, 131_000), ConnectorError::Unknown("no".to_owned())),
        (
            Response::new(502),
            ConnectorError::Unknown("the server answered 502 without a result".to_owned()),
        ),
    ] {
        let _server = serve_http(move |_| Ok(answer.clone()));
        assert_eq!(exchange().send("4912", "hi").unwrap_err(), expected);
    }
}

#[test]
fn a_file_of_a_server_in_trouble_is_tried_again_and_one_that_is_gone_is_not() {
    for (status, is_later) in [(502, true), (429, true), (404, false)] {
        let found = json!({ "url": "https://lookaside.fbsbx.com/a" });
        let _server = serve_http(move |request| {
            Ok(if request.authority() == "graph.facebook.com" {
                Response::new(200).with_json(&found)
            } else {
                Response::new(status)
            })
        });
        let error = exchange().fetch("m1").unwrap_err();
        let is_as_expected = matches!(error, ConnectorError::RetryLater(_)) == is_later;
        assert!(is_as_expected, "{status}: {error:?}");
    }
}

#[test]
fn a_file_is_got_from_the_services_own_server_alone() {
    for (url, expected) in [
        ("https://lookaside.fbsbx.com/a", Ok(b"x".to_vec())),
        (
            "https://evil.example/a",
            Err(ConnectorError::Rejected(
                "the file lies elsewhere".to_owned(),
            )),
        ),
    ] {
        let found = json!({ "url": url });
        let _server = serve_http(move |request| {
            Ok(if request.authority() == "graph.facebook.com" {
                Response::new(200).with_json(&found)
            } else {
                Response::new(200).with_body(*b"x")
            })
        });
        assert_eq!(exchange().fetch("m1"), expected, "{url}");
    }
}

#[test]
fn people_without_a_number_and_groups_are_read_and_answered() {
    let mut called = call(&json!([
        { "from_user_id": "DE.13491", "id": "w1", "timestamp": "1700000000", "type": "text",
          "text": { "body": "hi" } },
        { "from": "4912", "from_user_id": "DE.7", "group_id": "Hbg1", "id": "w2",
          "timestamp": "1700000001", "type": "text", "text": { "body": "all" } },
    ]));
    let contact = r#""contacts":[{"user_id":"DE.13491","profile":{"name":"Bob"}},"#;
    let body = String::from_utf8(called.body).unwrap();
    called.body = body.replace(r#""contacts":["#, contact).into_bytes();
    let batch = exchange().receive(&called).unwrap();
    let [named, in_group] = &batch.messages[..] else {
        panic!("{batch:?}")
    };
    assert_eq!(named.sender_name.as_deref(), Some("Bob"));
    let place = |it: &Incoming| (it.sender.clone(), it.group.clone(), it.chat.clone());
    assert_eq!(
        place(named),
        ("DE.13491".to_owned(), None, "DE.13491".to_owned())
    );
    let group = Some("Hbg1".to_owned());
    assert_eq!(
        place(in_group),
        ("4912".to_owned(), group, "group/Hbg1".to_owned())
    );

    let sent = json!({ "messages": [{ "id": "wamid.1" }] });
    let server = serve_http(move |_| Ok(Response::new(200).with_json(&sent)));
    exchange().send(&named.chat, "hello").unwrap();
    let choices = [("Tea", "a:1"), ("Coffee", "a:2")];
    exchange().ask(&in_group.chat, "Which?", &choices).unwrap();
    let asked = |place: usize| server.requests()[place].json::<Value>().unwrap();
    assert_eq!(asked(0)["recipient"], json!("DE.13491"));
    assert!(asked(0).get("to").is_none(), "{}", asked(0));
    let group = asked(1);
    assert_eq!(
        (&group["recipient_type"], &group["to"]),
        (&json!("group"), &json!("Hbg1"))
    );
    let words = "Which?\n\nReply with one of: Tea, Coffee";
    assert_eq!(group["text"]["body"], json!(words));
}

#[test]
fn choices_that_say_the_same_are_a_list() {
    let sent = json!({ "messages": [{ "id": "wamid.1" }] });
    let server = serve_http(move |_| Ok(Response::new(200).with_json(&sent)));
    let choices = [("Tea", "a:1"), ("Tea", "a:2")];
    exchange().ask("4912", "Which?", &choices).unwrap();
    let asked: Value = server.requests()[0].json().unwrap();
    assert_eq!(asked["interactive"]["type"], json!("list"));
}
