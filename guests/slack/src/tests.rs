//! The connector against a script in the server's place.

use super::*;
use agent_host_sdk::harness::{Exchange, serve_http};
use agent_host_sdk::http::Response;
use agent_host_sdk::{Body, Incoming, Moved, Quotation, QuotationKind, Said};
use serde_json::json;

fn incoming_call(body: &str) -> IncomingCall {
    IncomingCall {
        body: body.as_bytes().to_vec(),
        ..IncomingCall::default()
    }
}

fn event(event: &Value) -> IncomingCall {
    let call = json!({
        "type": "event_callback", "event_id": "Ev1", "event": event,
        "authorizations": [{ "user_id": "UBOT", "is_bot": true }],
    });
    incoming_call(&call.to_string())
}

/// The message that the connector reads in an event.
fn read(reported: &Value) -> Option<Incoming> {
    let batch = Exchange::of(Slack).receive(&event(reported)).unwrap();
    batch.messages.into_iter().next()
}

/// A message in the chat of two with these fields.
fn direct(fields: &Value) -> Value {
    let mut reported = json!({
        "type": "message", "user": "U1", "channel": "D1", "channel_type": "im", "ts": "1.0",
    });
    let message = reported.as_object_mut().unwrap();
    message.extend(fields.as_object().unwrap().clone());
    reported
}

#[test]
fn a_new_apps_challenge_is_answered() {
    let call = json!({ "type": "url_verification", "challenge": "c123" });
    let batch = Exchange::of(Slack)
        .receive(&incoming_call(&call.to_string()))
        .unwrap();
    assert_eq!(batch.answer.as_deref(), Some("c123"));
    assert!(batch.messages.is_empty());
}

#[test]
fn a_mention_in_a_channel_is_answered_in_its_thread() {
    let mention = event(&json!({
        "type": "app_mention", "user": "U1", "channel": "C1", "channel_type": "channel",
        "ts": "1700000000.000100", "text": "<@UBOT> is 1 &lt; 2?",
    }));
    let batch = Exchange::of(Slack).receive(&mention).unwrap();
    let [message] = &batch.messages[..] else {
        panic!("{batch:?}")
    };
    assert_eq!(message.said, Said::Text("is 1 < 2?".to_owned()));
    assert_eq!(message.chat, "C1/1700000000.000100");
    assert_eq!(message.group.as_deref(), Some("C1"));
    assert_eq!(
        (message.id.as_str(), message.sent_ms),
        ("C1-1700000000.000100", 1_700_000_000_000)
    );
}

#[test]
fn only_what_is_said_to_the_app_is_read_and_never_a_bot() {
    let said = |kind: &str, channel_type: &str| {
        json!({
            "type": kind, "user": "U1", "channel": "X", "channel_type": channel_type,
            "ts": "1.0", "text": "hi",
        })
    };
    let mut of_bot = said("message", "im");
    of_bot["bot_id"] = json!("B1");
    let mut joined = said("message", "im");
    joined["subtype"] = json!("channel_join");
    for (reported, all_messages, is_read) in [
        (said("message", "im"), false, true),
        (said("message", "channel"), false, false),
        (said("message", "channel"), true, true),
        // The same words come as a mention too, and are read once.
        (said("app_mention", "channel"), true, false),
        (of_bot, true, false),
        (joined, true, false),
    ] {
        let configuration = json!({ "allMessages": all_messages });
        let exchange = Exchange::of(Slack).configured(configuration);
        let batch = exchange.receive(&event(&reported)).unwrap();
        assert_eq!(
            !batch.messages.is_empty(),
            is_read,
            "{reported} {all_messages}"
        );
    }
}

#[test]
fn a_mention_that_comes_as_a_message_too_has_one_id() {
    let reported = |kind: &str| {
        json!({
            "type": kind, "user": "U1", "channel": "C1", "channel_type": "channel",
            "ts": "2.0", "thread_ts": "1.0", "text": "<@UBOT> and now?",
        })
    };
    let mention = read(&reported("app_mention")).unwrap();
    let message = read(&reported("message")).unwrap();
    assert_eq!(mention, message);
    assert!(!message.overheard);
}

#[test]
fn a_follow_up_in_a_thread_is_overheard_and_one_to_the_bot_is_meant() {
    let said = |thread: Option<&str>, parent: Option<&str>| {
        let mut reported = json!({
            "type": "message", "user": "U1", "channel": "C1", "channel_type": "channel",
            "ts": "2.0", "text": "and then?",
        });
        if let Some(thread) = thread {
            reported["thread_ts"] = json!(thread);
            reported["parent_user_id"] = json!(parent);
        }
        read(&reported).map(|read| (read.chat, read.overheard))
    };
    let thread = "C1/1.0".to_owned();
    assert_eq!(said(Some("1.0"), Some("U2")), Some((thread.clone(), true)));
    assert_eq!(said(Some("1.0"), Some("UBOT")), Some((thread, false)));
    // The beginning of a thread is no follow-up.
    assert_eq!(said(Some("2.0"), None), None);
    assert_eq!(said(None, None), None);
}

#[test]
fn a_channel_with_another_id_is_followed() {
    let reported = json!({
        "type": "channel_id_changed", "old_channel_id": "G1", "new_channel_id": "C1",
        "event_ts": "1.0",
    });
    let batch = Exchange::of(Slack).receive(&event(&reported)).unwrap();
    let moved = Moved {
        from: "G1".to_owned(),
        to: "C1".to_owned(),
        is_group: true,
    };
    assert_eq!((batch.moved, batch.messages), (vec![moved], Vec::new()));
}

#[test]
fn links_and_names_are_read_as_words() {
    for (text, expected) in [
        (
            "see <https://a.example/?b=1&amp;c=2|the news>",
            "see [the news](https://a.example/?b=1&c=2)",
        ),
        ("<https://a.example/>", "https://a.example/"),
        ("<http://a.example|a.example>", "a.example"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<@U2|bob> in <#C1|general>", "@bob in #general"),
        ("<@U2> in <#C1>", "<@U2> in <#C1>"),
        ("<!here> and <!subteam^S1|@team>", "@here and @team"),
        ("<!date^1^{date}|today>", "today"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
    ] {
        let read = read(&direct(&json!({ "text": text }))).unwrap();
        assert_eq!(read.said, Said::Text(expected.to_owned()));
    }
}

#[test]
fn a_shared_message_is_a_quotation() {
    let shared = direct(&json!({
        "text": "what of this?",
        "attachments": [{
            "is_share": true, "author_name": "Bob", "text": "the <https://a.example|plan>",
            "files": [{ "url_private": "https://files.slack.com/a" }],
        }],
    }));
    let shared = read(&shared).unwrap();
    assert_eq!(shared.said, Said::Text("what of this?".to_owned()));
    assert_eq!(
        shared.quotations,
        [Quotation {
            kind: QuotationKind::Forwarded,
            author: Some("Bob".to_owned()),
            text: "the [plan](https://a.example)".to_owned(),
        }]
    );
    assert_eq!(shared.attachments.len(), 1);
    let broadcast = direct(&json!({
        "subtype": "thread_broadcast", "thread_ts": "0.5", "text": "done",
        "root": { "user": "U2", "text": "who does it?" },
    }));
    let broadcast = read(&broadcast).unwrap();
    assert_eq!(broadcast.quotations[0].kind, QuotationKind::Quoted);
    assert_eq!(broadcast.quotations[0].text, "who does it?");
    assert_eq!(broadcast.replies_to, None);
    let of_app = direct(&json!({
        "text": "and then?", "subtype": "thread_broadcast",
        "root": { "user": "UBOT", "ts": "0.5", "text": "one" },
    }));
    // The host knows its own words.
    assert_eq!(read(&of_app).unwrap().replies_to.as_deref(), Some("0.5"));
}

#[test]
fn a_reaction_to_a_message_of_the_apps_is_heard_with_the_chat_and_the_message() {
    let reaction = |kind: &str, channel: &str, author: Option<&str>| {
        let mut reported = json!({
            "type": kind, "user": "U1", "reaction": "thumbsup", "event_ts": "3.0",
            "item": { "type": "message", "channel": channel, "ts": "1.0" },
        });
        if let Some(author) = author {
            reported["item_user"] = json!(author);
        }
        read(&reported)
    };
    let own = Some("UBOT");
    for (kind, channel, author, words) in [
        ("reaction_added", "D1", None, "[reaction :thumbsup:]"),
        ("reaction_added", "D1", own, "[reaction :thumbsup:]"),
        ("reaction_added", "C1", own, "[reaction :thumbsup:]"),
        (
            "reaction_removed",
            "C1",
            own,
            "[reaction :thumbsup: taken back]",
        ),
    ] {
        let read = reaction(kind, channel, author).unwrap();
        assert_eq!(read.said, Said::Aside(words.to_owned()));
        // The host finds the thread by the message, and hears nothing without one.
        assert_eq!((read.chat.as_str(), read.overheard), (channel, true));
        assert_eq!(read.replies_to.as_deref(), Some("1.0"));
        let group = (channel == "C1").then_some("C1");
        assert_eq!((read.group.as_deref(), read.sender.as_str()), (group, "U1"));
    }
    assert_eq!(reaction("reaction_added", "C1", None), None);
    assert_eq!(reaction("reaction_added", "C1", Some("U2")), None);
    assert_eq!(reaction("reaction_added", "D1", Some("U1")), None);
}

#[test]
fn edits_and_what_cannot_be_read_are_heard_in_words() {
    let edited = |before: &str, now: &str| {
        json!({
            "type": "message", "subtype": "message_changed", "channel": "D1",
            "channel_type": "im", "ts": "9.0",
            "message": { "user": "U1", "ts": "1.0", "text": now, "edited": { "ts": "8.0" } },
            "previous_message": { "user": "U1", "ts": "1.0", "text": before },
        })
    };
    let message = read(&edited("one", "two")).unwrap();
    assert_eq!(message.said, Said::Aside("[edited] two".to_owned()));
    assert_eq!(message.id, "D1-1.0-8.0");
    // A preview of a link changes no words.
    assert_eq!(read(&edited("one", "one")), None);
    let empty = read(&direct(&json!({ "text": "" }))).unwrap();
    assert_eq!(
        empty.said,
        Said::Aside("[a message of a kind that cannot be read here]".to_owned())
    );
    let me = direct(&json!({ "subtype": "me_message", "text": "waves" }));
    let me = read(&me).map(|read| read.said);
    assert_eq!(me, Some(Said::Text("waves".to_owned())));
}

#[test]
fn blocks_without_a_text_are_read_as_words() {
    let section = |elements: &Value| json!({ "type": "rich_text_section", "elements": elements });
    let word = |text: &str| section(&json!([{ "type": "text", "text": text }]));
    let rich = |parts: &Value| json!([{ "type": "rich_text", "elements": parts }]);
    for (blocks, expected) in [
        (
            rich(&json!([section(&json!([
                { "type": "text", "text": "ask " }, { "type": "user", "user_id": "U2" },
                { "type": "text", "text": " in " }, { "type": "channel", "channel_id": "C1" },
                { "type": "text", "text": " & " }, { "type": "broadcast", "range": "here" },
                { "type": "text", "text": " " }, { "type": "emoji", "name": "tea" },
                { "type": "text", "text": " " },
                { "type": "link", "url": "https://a.example/", "text": "the news" },
            ]))])),
            "ask <@U2> in <#C1> & @here :tea: [the news](https://a.example/)",
        ),
        (
            rich(&json!([
                { "type": "rich_text_list", "style": "ordered", "elements": [word("a"), word("b")] },
                { "type": "rich_text_list", "style": "bullet", "indent": 1, "elements": [word("c")] },
                { "type": "rich_text_quote", "elements": [{ "type": "text", "text": "d\ne" }] },
                { "type": "rich_text_preformatted", "elements": [{ "type": "text", "text": "f" }] },
            ])),
            "1. a\n2. b\n  - c\n> d\n> e\n```\nf\n```",
        ),
        (
            json!([
                { "type": "header", "text": { "type": "plain_text", "text": "1 &lt; 2" } },
                { "type": "section", "text": { "type": "mrkdwn", "text": "<https://a.example|a>" },
                  "fields": [{ "type": "plain_text", "text": "b" }] },
                { "type": "divider" },
                { "type": "image", "image_url": "https://a.example/c", "alt_text": "c" },
            ]),
            "1 &lt; 2\n[a](https://a.example)\nb\n[image c]",
        ),
    ] {
        let message = read(&direct(&json!({ "text": "", "blocks": blocks }))).unwrap();
        assert_eq!(message.said, Said::Text(expected.to_owned()));
        let shared = direct(&json!({ "text": "see", "attachments": [{
            "is_share": true, "fallback": "[no preview]",
            "message_blocks": [{ "message": { "blocks": blocks } }],
        }] }));
        assert_eq!(read(&shared).unwrap().quotations[0].text, expected);
        // The text beside blocks says the same.
        let both = read(&direct(&json!({ "text": "said", "blocks": blocks }))).unwrap();
        assert_eq!(both.said, Said::Text("said".to_owned()));
    }
    let nothing = json!({ "blocks": [{ "type": "actions", "elements": [] }] });
    assert!(matches!(
        read(&direct(&nothing)).unwrap().said,
        Said::Aside(_)
    ));
}

#[test]
fn a_file_that_the_app_cannot_get_is_told_of_in_words() {
    let files = json!([
        { "id": "F1", "name": "plan.pdf", "file_access": "check_file_info" },
        { "id": "F2", "mode": "tombstone" },
        { "name": "a.txt", "url_private": "https://files.slack.com/a" },
    ]);
    let message = read(&direct(
        &json!({ "subtype": "file_share", "text": "see", "files": files }),
    ));
    let message = message.unwrap();
    let reported =
        "see\n[file plan.pdf, which cannot be read here]\n[file that cannot be read here]";
    assert_eq!(message.said, Said::Text(reported.to_owned()));
    assert_eq!(message.attachments.len(), 1);
}

#[test]
fn a_chat_of_two_is_told_by_its_id_too() {
    let reported =
        json!({ "type": "message", "user": "U1", "channel": "D1", "ts": "1.0", "text": "hi" });
    let message = read(&reported).unwrap();
    assert_eq!((message.chat.as_str(), message.group), ("D1", None));
}

#[test]
fn a_command_of_slack_is_a_message() {
    let form = |channel: &str| {
        format!(
            "token=t&channel_id={channel}&user_id=U1&user_name=ada&command=%2Fqueue\
             &text=collect+cap%3A5&trigger_id=1.2.a%26b&response_url=https%3A%2F%2Fa.example"
        )
    };
    for (channel, group) in [("D1", None), ("C1", Some("C1"))] {
        let batch = Exchange::of(Slack).receive(&incoming_call(&form(channel)));
        let message = batch.unwrap().messages.remove(0);
        assert_eq!(message.said, Said::Text("/queue collect cap:5".to_owned()));
        assert_eq!(message.id, "command-1.2.a&b");
        assert_eq!(
            (message.chat.as_str(), message.sender.as_str()),
            (channel, "U1")
        );
        assert_eq!(message.group.as_deref(), group);
    }
    // With this Slack asks whether the address is there.
    let check = Exchange::of(Slack).receive(&incoming_call("ssl_check=1&token=t"));
    assert!(check.unwrap().messages.is_empty());
}

#[test]
fn what_was_pressed_is_told_in_the_place_of_the_buttons() {
    let pressed = json!({
        "type": "block_actions", "user": { "id": "U1" }, "channel": { "id": "D1" },
        "message": { "ts": "4.0", "text": "Sure?", "blocks": [
            { "type": "section", "block_id": "x", "text": { "type": "mrkdwn", "text": "Sure?" } },
            { "type": "actions", "elements": [] },
        ] },
        "actions": [{ "value": "a:1", "action_ts": "5.5", "text": { "text": "Yes" } }],
    });
    let body = format!("payload={}", pressed.to_string().replace('+', "%2B"));
    let batch = Exchange::of(Slack).receive(&incoming_call(&body)).unwrap();
    let handle = batch.messages[0].acknowledge.clone().unwrap();
    let server = serve_http(|_| Ok(Response::new(200).with_json(&json!({ "ok": true }))));
    let reported = Exchange::of(Slack).deliver("D1", Body::Acknowledgement(handle));
    assert_eq!(reported.unwrap(), "");
    let request = &server.requests()[0];
    assert_eq!(request.path(), "/api/chat.update");
    let asked: Value = request.json().unwrap();
    assert_eq!(
        (&asked["ts"], &asked["channel"]),
        (&json!("4.0"), &json!("D1"))
    );
    let kinds: Vec<&Value> = asked["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["section", "context"]);
    assert_eq!(asked["blocks"][1]["elements"][0]["text"], json!("✓ Yes"));
}

#[test]
fn a_pressed_button_comes_as_a_form() {
    let body = "payload=%7B%22type%22%3A%22block_actions%22%2C%22user%22%3A%7B%22id%22%3A%22U1%22\
                %7D%2C%22channel%22%3A%7B%22id%22%3A%22D1%22%7D%2C%22message%22%3A%7B%7D%2C%22\
                actions%22%3A%5B%7B%22value%22%3A%22a%3A1%22%2C%22action_ts%22%3A%225.5%22%7D%5D%7D";
    let batch = Exchange::of(Slack).receive(&incoming_call(body)).unwrap();
    assert_eq!(batch.messages[0].said, Said::Button("a:1".to_owned()));
    assert_eq!(batch.messages[0].id, "action-5.5");
    assert_eq!(batch.messages[0].chat, "D1");
}

#[test]
fn a_text_goes_into_the_thread_and_a_question_has_buttons() {
    let server = serve_http(|_| {
        Ok(Response::new(200).with_json(&json!({ "ok": true, "ts": "9.9", "channel": "C1" })))
    });
    let exchange = Exchange::of(Slack);
    assert_eq!(exchange.send("C1/1.1", "**hi** <all>").unwrap(), "9.9");
    exchange.ask("D1", "Sure?", &[("Yes", "a:1")]).unwrap();
    let sent: Vec<Value> = server
        .requests()
        .iter()
        .map(|it| it.json().unwrap())
        .collect();
    assert_eq!(sent[0]["thread_ts"], json!("1.1"));
    assert_eq!(sent[0]["text"], json!("*hi* &lt;all&gt;"));
    assert_eq!(sent[1]["blocks"][1]["elements"][0]["value"], json!("a:1"));
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some("{{secret.slack}}")
    );
}

#[test]
fn failures_say_whether_anything_was_done() {
    let no = |error: &str| Response::new(200).with_json(&json!({ "ok": false, "error": error }));
    for (answer, expected) in [
        (
            Response::new(429).with_header("retry-after", "7"),
            ConnectorError::RetryLater(7_000),
        ),
        (
            no("token_revoked"),
            ConnectorError::Unauthorised("token_revoked".to_owned()),
        ),
        (
            no("channel_not_found"),
            ConnectorError::Rejected("channel_not_found".to_owned()),
        ),
        (
            no("internal_error"),
            ConnectorError::Unknown("internal_error".to_owned()),
        ),
    ] {
        let _server = serve_http(move |_| Ok(answer.clone()));
        let error = Exchange::of(Slack).send("C1", "hi").unwrap_err();
        assert_eq!(error, expected);
    }
}

#[test]
fn files_of_other_servers_never_get_the_token() {
    let server = serve_http(|_| Ok(Response::new(200).with_body(*b"x")));
    let exchange = Exchange::of(Slack);
    assert!(
        exchange
            .fetch("https://evil.example/files.slack.com/a")
            .is_err()
    );
    assert!(server.requests().is_empty());
    assert_eq!(exchange.fetch("https://files.slack.com/a").unwrap(), b"x");
}

#[test]
fn a_file_of_a_server_in_trouble_is_tried_again_and_one_that_is_gone_is_not() {
    for (status, is_later) in [(503, true), (429, true), (404, false)] {
        let _server = serve_http(move |_| Ok(Response::new(status)));
        let error = Exchange::of(Slack).fetch("https://files.slack.com/a");
        let error = error.unwrap_err();
        let is_as_expected = matches!(error, ConnectorError::RetryLater(_)) == is_later;
        assert!(is_as_expected, "{status}: {error:?}");
    }
}

#[test]
fn a_short_edit_leaves_no_blocks_of_a_longer_one_before() {
    let server =
        serve_http(|_| Ok(Response::new(200).with_json(&json!({ "ok": true, "ts": "1" }))));
    let edit = Body::Edit {
        id: "1".to_owned(),
        text: "short".to_owned(),
    };
    Exchange::of(Slack).deliver("D1", edit).unwrap();
    let edited: Value = server.requests()[0].json().unwrap();
    assert_eq!(
        (&edited["text"], &edited["blocks"]),
        (&json!("short"), &json!([]))
    );
}

#[test]
fn only_the_apps_own_mention_in_front_is_left_out() {
    let said = |text: &str| {
        let reported = json!({
            "type": "message", "user": "U1", "channel": "D1", "channel_type": "im", "ts": "1.0",
            "subtype": "thread_broadcast", "thread_ts": "0.5", "text": text,
        });
        let call = json!({
            "type": "event_callback", "event_id": "Ev1", "event": reported,
            "authorizations": [{ "user_id": "UBOT", "is_bot": true }],
        });
        let batch = Exchange::of(Slack).receive(&incoming_call(&call.to_string()));
        batch.unwrap().messages.remove(0).said
    };
    assert_eq!(said("<@UBOT> hi"), Said::Text("hi".to_owned()));
    assert_eq!(
        said("<@U2> is here"),
        Said::Text("<@U2> is here".to_owned())
    );
    assert_eq!(said("<@UBOT|helper> hi"), Said::Text("hi".to_owned()));
}

#[test]
fn a_question_that_is_long_once_escaped_has_several_sections() {
    let server =
        serve_http(|_| Ok(Response::new(200).with_json(&json!({ "ok": true, "ts": "1" }))));
    let text = format!("b{}", "a&".repeat(1_399));
    Exchange::of(Slack)
        .ask("D1", &text, &[("Yes", "a:1")])
        .unwrap();
    let asked: Value = server.requests()[0].json().unwrap();
    let blocks = asked["blocks"].as_array().unwrap();
    let sections: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["text"]["text"].as_str())
        .collect();
    assert_eq!((blocks.len(), sections.len()), (4, 3), "{blocks:?}");
    assert!(sections.iter().all(|it| it.chars().count() <= 3_000));
    assert!(
        sections
            .iter()
            .all(|it| it.starts_with(['a', 'b', '&']) && it.ends_with([';', 'a']))
    );
    let escaped = format!("b{}", "a&amp;".repeat(1_399));
    assert_eq!(sections.concat(), escaped);

    let edit = Body::Edit {
        id: "1".to_owned(),
        text,
    };
    Exchange::of(Slack).deliver("D1", edit).unwrap();
    let edited: Value = server.requests()[1].json().unwrap();
    assert_eq!(edited["blocks"].as_array().unwrap().len(), 3, "{edited}");
    assert_eq!(edited["text"], json!(sections[0]));
}
