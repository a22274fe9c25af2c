//! Conversations over Telegram: words, questions, files, long replies and groups.

use super::scene::{ADA, AGENT, Scene, Wanted, at, choice, get, reply, texts};
use super::telegram_server::Fault;
use agent_host_tests::patience::found;
use agent_host_tests::process::{script, shows, tells};
use domain::connector::ATTACHMENT_BYTES_MAX;
use domain::digest::Digest;
use serde_json::{Value, json};

/// UTF-16 units that Telegram takes in one message.
const TEXT_LIMIT: usize = 4_096;

#[tokio::test(flavor = "multi_thread")]
async fn a_person_talks_with_an_agent_of_their_own_and_is_answered_once() {
    let scene = Scene::new().await;
    scene.telegram.say(ADA, "hello");
    scene.telegram.messages(1).await;
    scene.telegram.say(ADA, "again");
    let sent = scene.telegram.messages(2).await;
    assert!(sent.iter().all(|it| it.chat == "7"), "{sent:?}");
    assert_eq!(scene.telegram.quiet().await, ["said hello", "said again"]);
    let ada = scene.user("ada").await;
    let agent = get(&ada, &at(AGENT)).await;
    shows(
        &agent,
        &json!({ "path": AGENT, "kind": "connector", "owner_user_id": "ada" }),
    );
    let session = scene.session("ada", AGENT).await;
    assert_eq!(texts(&session, "user"), ["hello", "again"]);
    let first = &session["messages"][0];
    // A paired user's words are their own.
    shows(
        first,
        &json!({ "untrusted": false, "origin": "connector:telegram" }),
    );
    let turn = session["turn_id"].as_str().unwrap();
    let turn = get(&ada, &format!("/api/turns/{turn}")).await;
    let [outbound_message] = turn["outbound_messages"].as_array().unwrap().as_slice() else {
        panic!("{turn}")
    };
    shows(
        outbound_message,
        &json!({ "state": "delivered", "chat": "7", "service_ids": ["2"] }),
    );
    // Where turns are listed, each has its own.
    let id = session["session_id"].as_str().unwrap();
    let tree = get(&ada, &format!("{}/sessions/{id}/tree", at(AGENT))).await;
    let turns = tree["turns"].as_array().unwrap();
    let states: Vec<&Value> = turns
        .iter()
        .map(|it| &it["outbound_messages"][0]["state"])
        .collect();
    assert_eq!(states, [&json!("delivered"); 2], "{tree}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_triggers_and_connectors_are_accepted_before_their_turns_begin() {
    let every = json!({ "every": "30d" });
    let trigger = json!({
        "user": "local", "schedule": every, "target": { "agent": "puppet" }, "message": "hello",
    });
    let wanted = Wanted {
        triggers: json!({ "it": trigger }),
        ..Wanted::default()
    };
    let scene = Scene::with(wanted).await;
    scene
        .host
        .post("/api/triggers/it/run", &json!({}))
        .gives(202)
        .await;
    scene.telegram.say(ADA, "hello");
    scene.telegram.messages(1).await;
    let events = found(async || {
        let page = get(&scene.host.line(), "/api/events?limit=1000").await;
        let events = page["events"].as_array().unwrap().clone();
        let starts = events.iter().filter(|it| it["type"] == "run.started.v1");
        (starts.count() == 2).then_some(events)
    })
    .await;
    for kind in ["trigger", "connector"] {
        let accepted = |it: &Value| {
            let is_input = it["type"] == "session.input.accepted.v1";
            is_input && it["data"]["source"]["kind"] == kind
        };
        let begin = events.iter().position(accepted).unwrap();
        let input = &events[begin]["data"]["input_id"];
        let began = |it: &Value| {
            let is_start = it["type"] == "run.started.v1";
            is_start && it["data"]["claimed"] == json!([input])
        };
        let end = events.iter().position(began).unwrap();
        assert!(begin < end, "{kind}: {events:?}");
        assert_eq!(events[begin]["session_id"], events[end]["session_id"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_has_buttons_and_a_pressed_button_answers_it() {
    let scene = Scene::new().await;
    let options = ["tea", "coffee"].map(str::to_owned);
    scene.telegram.say(ADA, &choice(&options));
    let asked = scene.telegram.messages(1).await.remove(0);
    assert_eq!(asked.text, "Tea or coffee?");
    let buttons = asked.buttons();
    let labels: Vec<&str> = buttons.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, options);
    let (_, coffee) = &buttons[1];
    scene.telegram.press(ADA, coffee);
    let reported = scene.telegram.messages(2).await.remove(1).text;
    assert!(
        reported.contains("coffee") && !reported.contains("tea"),
        "{reported}"
    );
    scene.telegram.called("answerCallbackQuery").await;
    let acknowledged = scene.telegram.calls("answerCallbackQuery").remove(0).body;
    assert_eq!(acknowledged, json!({ "callback_query_id": "q" }));
    // The buttons are taken away.
    scene.telegram.called("editMessageReplyMarkup").await;
    let taken = scene.telegram.calls("editMessageReplyMarkup").remove(0);
    assert_eq!(taken.body["reply_markup"], json!({ "inline_keyboard": [] }));
    // A button of a question that is over says so, and begins no turn.
    scene.telegram.press(ADA, coffee);
    let over = scene.telegram.messages(3).await.remove(2).text;
    tells(&over, &["answered already"]);
    assert_eq!(scene.telegram.quiet().await.len(), 3);
    let session = scene.session("ada", AGENT).await;
    assert_eq!(texts(&session, "user").len(), 1, "{session}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_something_else_while_an_approval_is_open_is_told_how_it_is_given() {
    let wanted = Wanted {
        confirm: &["put"],
        ..Wanted::default()
    };
    let scene = Scene::with(wanted).await;
    let put = json!({ "key": "t", "tool": "put", "args": {} });
    scene
        .telegram
        .say(ADA, &script(&json!([{ "start": [put] }])));
    let asked = scene.telegram.messages(1).await.remove(0);
    let buttons = asked.buttons();
    let labels: Vec<&str> = buttons.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["Approve", "Refuse"], "{asked:?}");
    scene.telegram.say(ADA, "yes please");
    scene.telegram.messages(2).await;
    let mut reported = scene.telegram.quiet().await;
    reported.retain(|text| text.contains("still waits for your approval"));
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(reported[0].contains("approve "), "{reported:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_choices_than_buttons_are_numbered_and_a_number_is_the_answer() {
    let scene = Scene::new().await;
    let options: Vec<String> = (1..=12).map(|number| format!("tea {number}")).collect();
    scene.telegram.say(ADA, &choice(&options));
    let asked = scene.telegram.messages(1).await.remove(0);
    assert!(asked.buttons().is_empty(), "{asked:?}");
    assert!(
        asked.text.contains("12. tea 12") && asked.text.contains("Reply with a number"),
        "{asked:?}"
    );
    scene.telegram.say(ADA, "11");
    let reported = scene.telegram.messages(2).await.remove(1).text;
    tells(&reported, &["\"tea 11\""]);
    let session = scene.session("ada", AGENT).await;
    assert_eq!(texts(&session, "user").len(), 1, "an answer is no message");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_that_are_no_answer_to_an_open_question_go_to_the_agent() {
    let scene = Scene::new().await;
    let props = json!({ "prompt": "Well?", "options": ["tea", "coffee"] });
    let ask = json!({ "key": "q", "client": "multiple_choice", "props": props });
    let steps = json!([{ "start": [ask], "until": "any", "hear": true }]);
    scene.telegram.say(ADA, &script(&steps));
    scene.telegram.messages(1).await;
    scene.telegram.say(ADA, "What do you have?");
    let reported = scene.telegram.messages(2).await.remove(1).text;
    tells(&reported, &["said What do you have?"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_comes_with_words_is_a_file_of_the_session() {
    let scene = Scene::new().await;
    // A service that fails to give it at first is asked again.
    scene.telegram.fail("getFile", &[Fault::Lost]);
    let content = b"the tide is high at noon";
    scene.telegram.send_file(ADA, "Read this.", content);
    let reported = scene.telegram.messages(1).await.remove(0).text;
    tells(&reported, &["said Read this.", "notes.txt"]);
    let session = scene.session("ada", AGENT).await;
    let ada = scene.user("ada").await;
    let id = session["session_id"].as_str().unwrap();
    let files = get(&ada, &format!("{}/sessions/{id}/files", at(AGENT))).await;
    let [file] = files["files"].as_array().unwrap().as_slice() else {
        panic!("{files}")
    };
    let digest = Digest::of(content).reference();
    shows(
        file,
        &json!({ "name": "notes.txt", "media_type": "text/plain", "digest": digest }),
    );
    assert!(texts(&session, "user")[0].contains(&digest), "{session}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_too_large_is_not_asked_for_and_the_words_are_heard() {
    let scene = Scene::new().await;
    let content = vec![b'x'; usize::try_from(ATTACHMENT_BYTES_MAX).unwrap() + 1];
    scene.telegram.send_file(ADA, "Read this.", &content);
    let reported = scene.telegram.messages(1).await.remove(0).text;
    tells(&reported, &["said Read this.", "1 file was left out"]);
    assert!(scene.telegram.calls("getFile").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_of_a_channel_goes_before_that_of_the_host() {
    let scene = Scene::with(Wanted {
        queue: json!({ "mode": "collect", "byChannel": { "telegram": "followup" } }),
        ..Wanted::default()
    })
    .await;
    let slow = script(&json!([{ "start": [{ "key": "t", "timer": 2_000 }] }]));
    for words in [slow.as_str(), "one", "two"] {
        scene.telegram.say(ADA, words);
        scene.all_polled().await;
    }
    scene.telegram.messages(3).await;
    let reported = scene.telegram.quiet().await;
    assert_eq!(reported, ["t elapsed", "said one", "said two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_reply_comes_in_pieces_in_their_order() {
    let scene = Scene::new().await;
    let lines: Vec<String> = (0..600)
        .map(|line| format!("line {line:04} of it"))
        .collect();
    scene.telegram.say(ADA, &reply(&lines.join("\n\n")));
    let sent = scene.telegram.messages(3).await;
    scene.until_outbound_message("delivered").await;
    assert!(
        sent.iter()
            .all(|it| it.text.encode_utf16().count() <= TEXT_LIMIT),
        "{sent:?}"
    );
    let whole = scene.telegram.quiet().await.join("\n\n");
    assert_eq!(whole.split("\n\n").collect::<Vec<_>>(), lines);
    let outbound_message = scene.until_outbound_message("delivered").await;
    let chunks = outbound_message["service_ids"].as_array().unwrap().len();
    assert_eq!(chunks, scene.telegram.sent().len(), "{outbound_message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_a_user_of_its_own_and_one_without_a_key_is_not_heard() {
    let scene = Scene::connected(json!({ "groups": "bound", "unknown": "pair" })).await;
    scene.bind("telegram:group:-100", "family").await;
    // Ada is known, and this group is not.
    scene.telegram.say_in(-200, ADA, "not for the host");
    scene.telegram.say_in(-100, ADA, "hello");
    let sent = scene.telegram.messages(1).await.remove(0);
    assert_eq!(
        (sent.chat.as_str(), sent.text.as_str()),
        ("-100", "said [P7 (7)] hello")
    );
    assert_eq!(scene.telegram.quiet().await.len(), 1);
    let session = scene.session("family", "/family/telegram").await;
    let first = &session["messages"][0];
    assert_eq!(
        first["untrusted"], true,
        "words of a group are nobody's own: {first}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_another_id_is_answered_and_heard_there() {
    let scene = Scene::connected(json!({ "groups": "bound" })).await;
    scene.bind("telegram:group:-100", "family").await;
    scene
        .telegram
        .fail("sendMessage", &[Fault::Migrated(-1001)]);
    scene.telegram.say_in(-100, ADA, "hello");
    let sent = scene.telegram.messages(1).await.remove(0);
    assert_eq!(
        (sent.chat.as_str(), sent.text.as_str()),
        ("-1001", "said [P7 (7)] hello")
    );
    scene.until_outbound_message("delivered").await;
    scene.telegram.say_in(-1001, ADA, "again");
    let sent = scene.telegram.messages(2).await.remove(1);
    assert_eq!(sent.chat, "-1001");
    let session = scene.session("family", "/family/telegram").await;
    assert_eq!(texts(&session, "user").len(), 2, "one chat: {session}");
    // A group that tells of it before anybody is answered is followed too.
    let chat = json!({ "id": -1001, "type": "supergroup" });
    let reported = json!({ "message_id": 1, "date": 1, "chat": chat, "migrate_to_chat_id": -1002 });
    let reported = scene.telegram.update(json!({ "message": reported }));
    scene.telegram.push(vec![reported]);
    scene.telegram.say_in(-1002, ADA, "and again");
    let sent = scene.telegram.messages(3).await.remove(2);
    assert_eq!(sent.chat, "-1002");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_on_is_shown_as_data_with_its_author_and_where_it_leads() {
    let scene = Scene::new().await;
    let origin = json!({ "type": "channel", "chat": { "id": -9, "title": "News" } });
    let link = json!({
        "type": "text_link", "offset": 5, "length": 4, "url": "https://news.example/post",
    });
    scene.telegram.send(
        ADA,
        &json!({ "text": "read this", "entities": [link], "forward_origin": origin }),
    );
    scene.telegram.messages(1).await;
    let session = scene.session("ada", AGENT).await;
    let first = &session["messages"][0];
    assert_eq!(
        first["text"],
        "<from forwarded=\"News\" untrusted>\nread [this](https://news.example/post)\n</from>"
    );
    assert_eq!(first["untrusted"], true, "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directive_of_the_queue_is_confirmed_in_the_chat() {
    let scene = Scene::new().await;
    scene.telegram.say(ADA, "hello");
    scene.telegram.messages(1).await;
    scene.telegram.say(ADA, "/queue collect");
    let reported = scene.telegram.messages(2).await.remove(1).text;
    tells(&reported, &["collect"]);
    let session = scene.session("ada", AGENT).await;
    assert_eq!(texts(&session, "user"), ["hello"], "no agent hears it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_that_comes_twice_or_late_is_taken_once() {
    let scene = Scene::new().await;
    scene.telegram.say(ADA, "one");
    scene.telegram.messages(1).await;
    // All comes again, with something new behind it.
    scene.telegram.say(ADA, "two");
    scene.telegram.repeat();
    scene.telegram.messages(2).await;
    // The later one comes first.
    let early = scene.telegram.saying(ADA, "three");
    let late = scene.telegram.saying(ADA, "four");
    scene.telegram.push(vec![late, early]);
    let reported = scene.telegram.messages(3).await.remove(2).text;
    assert_eq!(reported, "said four\nthree");
    assert_eq!(scene.telegram.quiet().await.len(), 3);
    let session = scene.session("ada", AGENT).await;
    assert_eq!(texts(&session, "user"), ["one", "two", "four\nthree"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_within_a_moment_is_one_message_of_each_person() {
    let scene = Scene::new().await;
    scene.bind("telegram:9", "bob").await;
    let said = [(ADA, "one"), (9, "eins"), (ADA, "two"), (9, "zwei")];
    let updates = said.map(|(who, text)| scene.telegram.saying(who, text));
    scene.telegram.push(updates.to_vec());
    scene.telegram.messages(2).await;
    let mut reported = scene.telegram.quiet().await;
    reported.sort_unstable();
    assert_eq!(reported, ["said eins\nzwei", "said one\ntwo"]);
}

/// Messages that wait at the service while no host polls come with one poll, each with the time at
/// which it was written.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_one_poll_brings_are_turns_of_their_own_where_the_mode_says_so() {
    let scene = Scene::connected(json!({ "queue": { "mode": "followup" } })).await;
    let updates = ["one", "two", "three"].map(|text| scene.telegram.saying(ADA, text));
    scene.telegram.push(updates.to_vec());
    scene.telegram.messages(3).await;
    let reported = scene.telegram.quiet().await;
    assert_eq!(reported, ["said one", "said two", "said three"]);
}
