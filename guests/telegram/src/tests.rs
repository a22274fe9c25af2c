//! The connector against a script in the server's place.

use super::*;
use agent_host_sdk::harness::{Exchange, logged, serve_http};
use agent_host_sdk::http::{HttpError, Outgoing, Response};
use agent_host_sdk::{Body, Incoming, Moved, Quotation, QuotationKind, Said};

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
        "message": {
            "message_id": 7, "date": 1, "chat": { "id": 42, "type": "private" },
            "reply_markup": { "inline_keyboard": [[{ "text": "Yes", "callback_data": "a:1" }]] },
        },
    }})
}

/// A message of a person in their own chat, or in the group `-5`, with these fields.
fn with(chat: i64, fields: &Value) -> Value {
    let mut update = message(1, chat, "");
    let message = update["message"].as_object_mut().unwrap();
    message.remove("text");
    message.extend(fields.as_object().unwrap().clone());
    update
}

/// The message that the connector reads in an update.
fn read(update: &Value) -> Option<Incoming> {
    let incoming_call = IncomingCall {
        body: update.to_string().into_bytes(),
        ..IncomingCall::default()
    };
    let batch = Exchange::of(Telegram).receive(&incoming_call).unwrap();
    batch.messages.into_iter().next()
}

/// The words that the connector reads in a message of a person in their own chat.
fn words(fields: &Value) -> String {
    match read(&with(42, fields)).map(|read| read.said) {
        Some(Said::Text(text) | Said::Aside(text)) => text,
        other => panic!("{fields}: {other:?}"),
    }
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
    let incoming_call = IncomingCall {
        body: pressed().to_string().into_bytes(),
        ..IncomingCall::default()
    };
    let mut exchange = Exchange::of(Telegram);
    let received = exchange.receive(&incoming_call).unwrap();
    assert!(server.requests().is_empty(), "{:?}", server.requests());
    let polled = exchange.poll().unwrap();
    let asked: Vec<String> = server.requests().iter().map(method).collect();
    assert_eq!(asked, ["getUpdates"]);
    assert_eq!(received.messages, polled.messages);
    let message = &received.messages[0];
    assert_eq!(message.said, Said::Button("a:1".to_owned()));
    assert!(message.acknowledge.is_some(), "{message:?}");
}

#[test]
fn what_was_pressed_is_told_and_the_buttons_are_taken_away() {
    let handle = read(&pressed()).unwrap().acknowledge.unwrap();
    let server = serve_http(|_| Ok(ok(&json!(true))));
    let acknowledgement = Body::Acknowledgement(handle);
    let id = Exchange::of(Telegram).deliver("42", acknowledgement);
    assert_eq!(id.unwrap(), "");
    let requests = server.requests();
    let asked: Vec<(String, Value)> = requests
        .iter()
        .map(|it| (method(it), it.json().unwrap()))
        .collect();
    assert_eq!(
        asked,
        [
            (
                "answerCallbackQuery".to_owned(),
                json!({ "callback_query_id": "q1", "text": "✓ Yes" })
            ),
            (
                "editMessageReplyMarkup".to_owned(),
                json!({
                    "chat_id": "42", "message_id": 7,
                    "reply_markup": { "inline_keyboard": [] },
                })
            ),
        ]
    );
}

#[test]
fn buttons_are_taken_away_late_too_and_are_no_failure_where_they_are_gone() {
    let handle = read(&pressed()).unwrap().acknowledge.unwrap();
    let server = serve_http(|request| {
        let words = match method(request).as_str() {
            "answerCallbackQuery" => "Bad Request: query is too old",
            _ => "Bad Request: message is not modified",
        };
        Ok(refused(400, words, &json!({})))
    });
    let id = Exchange::of(Telegram).deliver("42", Body::Acknowledgement(handle));
    assert_eq!(id.unwrap(), "");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_link_behind_words_is_one_in_markdown_and_its_place_counts_utf16_units() {
    let news = "https://news.example/post?id=7";
    let link = |offset: usize, length: usize, url: &str| json!({ "type": "text_link", "offset": offset, "length": length, "url": url });
    for (text, marks, expected) in [
        (
            "look here",
            json!([link(5, 4, news)]),
            "look [here](https://news.example/post?id=7)",
        ),
        // A sign outside of the basic plane is two units.
        (
            "👍👍 here!",
            json!([link(5, 4, "https://a.example/")]),
            "👍👍 [here](https://a.example/)!",
        ),
        (
            "a (b)",
            json!([link(0, 5, "https://a.example/b_(c)")]),
            "[a (b)](<https://a.example/b_(c)>)",
        ),
        // A mark within another one of the same length, and one that says itself.
        (
            "here",
            json!([{ "type": "bold", "offset": 0, "length": 4 }, link(0, 4, "https://a.example/")]),
            "[here](https://a.example/)",
        ),
        (
            "https://a.example/",
            json!([link(0, 18, "https://a.example/")]),
            "https://a.example/",
        ),
        (
            "ask Ada",
            json!([{ "type": "text_mention", "offset": 4, "length": 3, "user": { "id": 9 } }]),
            "ask [Ada](tg://user?id=9)",
        ),
        (
            "run x now",
            json!([{ "type": "code", "offset": 4, "length": 1 }]),
            "run `x` now",
        ),
        (
            "so: x now",
            json!([{ "type": "pre", "offset": 4, "length": 1, "language": "rust" }]),
            "so: \n```rust\nx\n```\n now",
        ),
        (
            "so: it is\nso it was why?",
            json!([{ "type": "blockquote", "offset": 4, "length": 15 }]),
            "so: \n> it is\n> so it was\n why?",
        ),
        (
            "it is\nwhy?",
            json!([{ "type": "expandable_blockquote", "offset": 0, "length": 5 }]),
            "> it is\nwhy?",
        ),
        // A place outside of the words is none.
        ("look", json!([link(2, 9, news)]), "look"),
    ] {
        let said = words(&json!({ "text": text, "entities": marks }));
        assert_eq!(said, expected);
        let beside = json!({
            "caption": text, "caption_entities": marks,
            "document": { "file_id": "F1" },
        });
        assert_eq!(words(&beside), expected, "beside a file");
    }
}

#[test]
fn every_kind_of_message_is_heard_in_words() {
    let place = json!({ "latitude": 59.91, "longitude": 10.75 });
    for (kind, content, expected) in [
        ("location", place.clone(), "[location 59.91, 10.75]"),
        (
            "venue",
            json!({ "location": place, "title": "Opera", "address": "Kirsten 1" }),
            "[venue Opera, Kirsten 1, location 59.91, 10.75]",
        ),
        (
            "contact",
            json!({ "first_name": "Bob", "last_name": "B", "phone_number": "+43 1" }),
            "[contact Bob B, +43 1]",
        ),
        (
            "poll",
            json!({ "question": "Tea?", "options": [{ "text": "Yes" }, { "text": "No" }] }),
            "[poll Tea?: Yes; No]",
        ),
        ("dice", json!({ "emoji": "🎲", "value": 4 }), "[dice 🎲 4]"),
        ("sticker", json!({ "emoji": "👍" }), "[sticker 👍]"),
        ("game", json!({ "title": "Chess" }), "[game Chess]"),
        (
            "story",
            json!({ "chat": { "title": "News" } }),
            "[story of News]",
        ),
        (
            "checklist",
            json!({ "title": "Buy", "tasks": [{ "text": "tea" }, { "text": "milk", "completion_date": 5 }] }),
            "[checklist Buy: tea; milk (done)]",
        ),
        (
            "giveaway_winners",
            json!({ "winner_count": 1 }),
            "[giveaway with its winners]",
        ),
        (
            "rich_message",
            json!({ "blocks": [
                { "type": "heading", "text": "Tides" },
                { "type": "paragraph", "text": ["The ", { "type": "bold", "text": "Moon" }, " does it, see ",
                    { "type": "url", "text": "here", "url": "https://a.example/" }] },
                { "type": "list", "items": [
                    { "label": "1.", "blocks": [{ "type": "paragraph", "text": "spring" }] },
                    { "label": "2.", "blocks": [{ "type": "paragraph", "text": "neap" }] },
                ] },
                { "type": "table", "cells": [[{ "text": "a" }, { "text": "b" }], [{ "text": "c" }]] },
                { "type": "divider" },
            ] }),
            "Tides\nThe Moon does it, see [here](https://a.example/)\n1. spring\n2. neap\na | b\nc",
        ),
        (
            "something_new",
            json!({}),
            "[a message of a kind that cannot be read here]",
        ),
    ] {
        let mut fields = json!({});
        fields[kind] = content;
        assert_eq!(words(&fields), expected);
    }
}

#[test]
fn animations_and_voices_are_files_and_come_once() {
    let moving = json!({ "file_id": "A", "mime_type": "video/mp4" });
    for fields in [
        json!({ "animation": moving, "document": moving }),
        json!({ "voice": { "file_id": "A" } }),
        json!({ "video_note": { "file_id": "A" } }),
    ] {
        let read = read(&with(42, &fields)).unwrap();
        let handles: Vec<&str> = read
            .attachments
            .iter()
            .map(|it| it.handle.as_str())
            .collect();
        assert_eq!(handles, ["A"], "{fields}");
    }
}

#[test]
fn what_is_passed_on_is_a_quotation_and_not_the_senders_words() {
    for (origin, author) in [
        (
            json!({ "type": "user", "sender_user": { "id": 9, "first_name": "Bob" } }),
            Some("Bob"),
        ),
        (
            json!({ "type": "hidden_user", "sender_user_name": "Eve" }),
            Some("Eve"),
        ),
        (
            json!({ "type": "chat", "sender_chat": { "id": -9, "title": "Club" } }),
            Some("Club"),
        ),
        (
            json!({ "type": "channel", "chat": { "id": -9, "title": "News" }, "message_id": 1 }),
            Some("News"),
        ),
        (json!({ "type": "of a later version" }), None),
    ] {
        let fields = json!({
            "forward_origin": origin, "text": "read this",
            "entities": [{ "type": "text_link", "offset": 5, "length": 4, "url": "https://a.example/" }],
        });
        let read = read(&with(42, &fields)).unwrap();
        assert_eq!(read.said, Said::Text(String::new()), "{fields}");
        assert_eq!(
            read.quotations,
            [Quotation {
                kind: QuotationKind::Forwarded,
                author: author.map(str::to_owned),
                text: "read [this](https://a.example/)".to_owned(),
            }]
        );
    }
    let photo = json!({ "forward_date": 1, "photo": [{ "file_id": "P" }] });
    let photo = read(&with(42, &photo)).unwrap();
    assert_eq!(photo.attachments[0].handle, "P");
    assert_eq!(photo.quotations[0].text, "[photo]");
}

#[test]
fn what_is_replied_to_or_quoted_comes_with_the_words() {
    let list = json!({
        "message_id": 3, "text": "1. Sun 2. Moon",
        "from": { "id": 1, "is_bot": true, "first_name": "Helper" },
    });
    for (fields, author, text) in [
        (
            json!({ "reply_to_message": list }),
            Some("Helper"),
            "1. Sun 2. Moon",
        ),
        (
            json!({ "reply_to_message": list, "quote": { "text": "2. Moon", "position": 7 } }),
            Some("Helper"),
            "2. Moon",
        ),
        (
            json!({
                "external_reply": { "origin": { "type": "hidden_user", "sender_user_name": "Eve" } },
                "quote": { "text": "so it is", "position": 0 },
            }),
            Some("Eve"),
            "so it is",
        ),
        (
            json!({ "reply_to_message": {
                "from": { "id": 9, "first_name": "Bob" }, "caption": "see",
                "document": { "file_id": "F", "file_name": "a.pdf" },
            } }),
            Some("Bob"),
            "see\n[document a.pdf]",
        ),
    ] {
        let mut fields = fields;
        fields["text"] = json!("expand point 2");
        let read = read(&with(42, &fields)).unwrap();
        assert_eq!(read.said, Said::Text("expand point 2".to_owned()));
        let quoted = Quotation {
            kind: QuotationKind::Quoted,
            author: author.map(str::to_owned),
            text: text.to_owned(),
        };
        assert_eq!(read.quotations, [quoted]);
        // The host knows which of them are its own.
        let of_bot = (author == Some("Helper")).then_some("3");
        assert_eq!(read.replies_to.as_deref(), of_bot);
    }
    // In a topic whatever is said replies to the making of it.
    let in_topic = json!({
        "text": "hi", "is_topic_message": true, "message_thread_id": 3,
        "reply_to_message": { "message_id": 3, "forum_topic_created": { "name": "Tea" } },
    });
    assert!(read(&with(-5, &in_topic)).unwrap().quotations.is_empty());
}

#[test]
fn edited_messages_and_reactions_are_heard_as_what_they_are() {
    let mut edited = message(3, 42, "hello");
    edited["edited_message"] = edited["message"].take();
    edited.as_object_mut().unwrap().remove("message");
    let said = |update: &Value| read(update).map(|read| read.said);
    let aside = |text: &str| Some(Said::Aside(text.to_owned()));
    assert_eq!(said(&edited), aside("[edited] hello"));
    // A live location says over and over where its sender is.
    edited["edited_message"]["location"] = json!({ "latitude": 1, "longitude": 2 });
    assert_eq!(said(&edited), None);
    let reaction = |chat: i64, now: &Value| {
        let kind = if chat < 0 { "supergroup" } else { "private" };
        read(&json!({ "update_id": 4, "message_reaction": {
            "chat": { "id": chat, "type": kind }, "message_id": 7, "date": 1,
            "user": { "id": 42, "first_name": "Ada" }, "old_reaction": [], "new_reaction": now,
        }}))
        .unwrap()
    };
    let thumb = json!([{ "type": "emoji", "emoji": "👍" }]);
    for (chat, now, words) in [
        (42, thumb.clone(), "[reaction 👍]"),
        (42, json!([]), "[reaction taken back]"),
        (-5, thumb, "[reaction 👍]"),
    ] {
        let read = reaction(chat, &now);
        assert_eq!(read.said, Said::Aside(words.to_owned()));
        // It is heard where the message is, if that is one of the bot's own.
        assert_eq!((read.chat, read.overheard), (chat.to_string(), true));
        assert_eq!(read.replies_to.as_deref(), Some("7"));
        assert_eq!(read.group.is_some(), chat < 0);
    }
}

#[test]
fn a_group_may_be_heard_only_where_it_speaks_to_the_bot() {
    let of_bot = json!({ "text": "1", "from": { "id": 1, "is_bot": true } });
    let mark = |kind: &str, offset: usize, length: usize| json!([{ "type": kind, "offset": offset, "length": length }]);
    let at_all = json!({ "text": "hi all" });
    for (chat, fields, is_heard) in [
        (-5, at_all.clone(), false),
        (42, at_all, true),
        (
            -5,
            json!({ "text": "hi @My_Bot", "entities": mark("mention", 3, 7) }),
            true,
        ),
        (
            -5,
            json!({ "text": "hi @another", "entities": mark("mention", 3, 8) }),
            false,
        ),
        (
            -5,
            json!({ "text": "/help@my_bot", "entities": mark("bot_command", 0, 12) }),
            true,
        ),
        (
            -5,
            json!({ "text": "more", "reply_to_message": of_bot }),
            true,
        ),
        (
            -5,
            json!({
                "caption": "@my_bot", "caption_entities": mark("mention", 0, 7),
                "photo": [{ "file_id": "P" }],
            }),
            true,
        ),
    ] {
        let update = with(chat, &fields);
        let server = serve_http(move |request| {
            Ok(match method(request).as_str() {
                "getMe" => ok(&json!({ "id": 1, "username": "my_bot" })),
                _ => ok(&json!([update])),
            })
        });
        let configuration = json!({ "allMessages": false });
        let batch = Exchange::of(Telegram).configured(configuration).poll();
        assert_eq!(!batch.unwrap().messages.is_empty(), is_heard, "{fields}");
        let asks_who_it_is = server.requests().iter().any(|it| method(it) == "getMe");
        assert_eq!(asks_who_it_is, chat < 0);
    }
    let reaction = json!({ "update_id": 4, "message_reaction": {
        "chat": { "id": -5, "type": "supergroup" }, "message_id": 7, "date": 1,
        "user": { "id": 42, "first_name": "Ada" }, "old_reaction": [],
        "new_reaction": [{ "type": "emoji", "emoji": "👍" }],
    }});
    let _server = serve_http(move |request| {
        Ok(match method(request).as_str() {
            "getMe" => ok(&json!({ "id": 1, "username": "my_bot" })),
            _ => ok(&json!([reaction])),
        })
    });
    let configuration = json!({ "allMessages": false });
    let batch = Exchange::of(Telegram).configured(configuration).poll();
    assert!(batch.unwrap().messages.is_empty(), "nobody is meant");
}

#[test]
fn whoever_speaks_as_a_group_or_a_channel_is_heard() {
    let update = with(
        -5,
        &json!({
            "text": "hi", "from": { "id": 1_087_968_824, "is_bot": true, "first_name": "Group" },
            "sender_chat": { "id": -5, "title": "Club" },
        }),
    );
    let read = read(&update).unwrap();
    assert_eq!(
        (read.sender.as_str(), read.sender_name.as_deref()),
        ("-5", Some("Club"))
    );
}

#[test]
fn a_reaction_of_whoever_speaks_as_a_group_is_heard() {
    let read = read(&json!({ "update_id": 4, "message_reaction": {
        "chat": { "id": -5, "type": "supergroup" }, "message_id": 7, "date": 1,
        "actor_chat": { "id": -5, "title": "Club", "type": "supergroup" }, "old_reaction": [],
        "new_reaction": [{ "type": "emoji", "emoji": "👍" }],
    }}))
    .unwrap();
    assert_eq!(read.said, Said::Aside("[reaction 👍]".to_owned()));
    assert_eq!(
        (read.sender.as_str(), read.sender_name.as_deref()),
        ("-5", Some("Club"))
    );
}

#[test]
fn a_group_that_became_a_supergroup_is_followed() {
    let server = serve_http(|request| {
        let asked: Value = request.json().unwrap();
        Ok(match asked["chat_id"].as_str() {
            Some("-5") => refused(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                &json!({ "migrate_to_chat_id": -1001 }),
            ),
            _ => ok(&json!({ "message_id": 9 })),
        })
    });
    let moved = Moved {
        from: "-5".to_owned(),
        to: "-1001".to_owned(),
        is_group: true,
    };
    let message = OutgoingMessage {
        chat: "-5".to_owned(),
        body: Body::Text("hi".to_owned()),
        idempotency_key: "key".to_owned(),
    };
    let error = Telegram.send(&json!({}), &message).unwrap_err();
    let expected = ConnectorError::Moved {
        chat: "-1001".to_owned(),
        moved: moved.clone(),
    };
    assert_eq!(error, expected);
    // As the host does: it sends the message there.
    assert_eq!(Exchange::of(Telegram).send("-5", "hi").unwrap(), "9");
    let last: Value = server.requests().last().unwrap().json().unwrap();
    assert_eq!(last["chat_id"], json!("-1001"));
    drop(server);
    let updates = json!([
        with(-5, &json!({ "migrate_to_chat_id": -1001 })),
        with(-1001, &json!({ "migrate_from_chat_id": -5 })),
    ]);
    let _server = serve_http(move |_| Ok(ok(&updates)));
    let batch = Exchange::of(Telegram).poll().unwrap();
    assert_eq!(batch.moved, [moved.clone(), moved]);
    assert!(batch.messages.is_empty(), "{batch:?}");
}

#[test]
fn messages_of_bots_and_joins_are_left_out() {
    let mut of_bot = message(1, 42, "hi");
    of_bot["message"]["from"]["is_bot"] = json!(true);
    let mut joined = message(2, -5, "");
    joined["message"]["new_chat_members"] = json!([{ "id": 9 }]);
    let added = with(-5, &json!({ "community_chat_added": { "community": {} } }));
    let updates = json!([of_bot, joined, added, { "update_id": 3, "poll": {} }]);
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
    let reported =
        || -> Vec<String> { logged().into_iter().map(|(_, reported)| reported).collect() };
    let server = serve_http(|_| {
        Err(HttpError::Unreachable {
            authority: "api.telegram.org".to_owned(),
        })
    });
    let later = ConnectorError::RetryLater(5_000);
    assert_eq!(Exchange::of(Telegram).poll().unwrap_err(), later);
    assert_eq!(Exchange::of(Telegram).send("42", "hi").unwrap_err(), later);
    let reasons = reported();
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
        assert_eq!(reported(), [expected]);
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
