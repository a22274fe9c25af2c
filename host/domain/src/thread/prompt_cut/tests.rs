//! Tests of what a cut leaves out of a prompt, and of what it never does.

use super::*;
use crate::thread::message::Answers;
use crate::thread::model::arrange;
use crate::values::digest::Digest;
use proptest::prelude::*;

fn said(id: MessageId, role: Role, text: &str) -> Message {
    Draft::text(role, "test", text).at(id, Salt::default())
}

/// A reply of the model with so many calls.
fn calls(id: MessageId, count: u32) -> Message {
    let parts = (0..count).map(|index| Part::Call {
        call_id: format!("c{index}"),
        name: "look".into(),
        arguments: "{}".into(),
    });
    Message {
        parts: parts.collect(),
        ..said(id, Role::Assistant, "")
    }
}

/// The result of a call, with so many bytes.
fn result(id: MessageId, of: MessageId, index: u32, bytes: usize) -> Message {
    Message {
        answers: Some(Answers {
            message: of,
            index,
            call_id: format!("c{index}"),
            name: "look".into(),
            failed: false,
        }),
        ..said(id, Role::Tool, &"x".repeat(bytes))
    }
}

/// A question, and so many exchanges after it, each a call with a result of so many bytes.
fn turn(exchanges: u64, bytes: usize) -> Vec<Message> {
    let mut messages = vec![said(1, Role::User, "look everywhere")];
    for exchange in 0..exchanges {
        let id = 2 + exchange * 2;
        messages.push(calls(id, 1));
        messages.push(result(id + 1, id, 0, bytes));
    }
    messages
}

fn room(target: u64, most: u64) -> Room {
    Room {
        target,
        most,
        around: 0,
        summary: 50,
    }
}

fn ids(messages: &[Message]) -> Vec<MessageId> {
    messages.iter().map(|message| message.id).collect()
}

#[test]
fn a_room_is_what_a_reply_leaves_and_a_prompt_is_cut_well_below_it() {
    for (window, reply, target, most) in [
        (10_000, 1_000, 6_000, 9_000),
        (10_000, 4_500, 5_500, 5_500),
        // No reply takes more than half of the window.
        (10_000, 50_000, 5_000, 5_000),
        (0, 10, 0, 0),
    ] {
        let room = Room::of(window, reply, 7);
        assert_eq!((room.target, room.most, room.around), (target, most, 7));
    }
    let refused = Room::of(10_000, 1_000, 0).after_refusal(8_000);
    assert_eq!((refused.target, refused.most), (4_000, 4_000));
}

#[test]
fn the_oldest_large_results_become_stubs_first_and_no_more_than_needed() {
    let messages = turn(6, 4_000);
    let cut = extended(&PromptCut::default(), &messages, room(4_500, 6_000));
    assert_eq!(cut.stubs.iter().copied().collect::<Vec<_>>(), [3, 5]);
    assert_eq!(cut.left_out_through, 0);
    assert!(
        cut.tokens_before > 6_000 && cut.tokens_after <= 4_500,
        "{cut:?}"
    );
    let shown = cut.apply(messages.clone());
    assert_eq!(ids(&shown), ids(&messages), "nothing is missing");
    let stub = shown[2].text();
    assert!(
        stub.contains("4000 bytes") && stub.contains("message 3") && stub.len() < 700,
        "{stub}"
    );
    assert_eq!(shown[2].answers, messages[2].answers);
    assert_eq!(shown[6], messages[6]);
}

#[test]
fn a_stub_names_the_blob_that_holds_the_whole() {
    let digest = Digest::of(b"whole");
    let mut message = result(3, 2, 0, 8_000);
    message.parts.push(Part::Blob {
        digest,
        media_type: "text/plain".into(),
        size: 50_000,
    });
    let stub = stub(&message).text();
    assert!(
        stub.contains(&digest.reference()) && stub.contains("50000 bytes"),
        "{stub}"
    );
}

#[test]
fn whole_exchanges_go_when_stubs_are_not_enough_and_the_users_words_stay() {
    let mut messages = turn(40, 400);
    // In front of the fifth call.
    for message in messages.iter_mut().skip(9) {
        message.id += 1;
        if let Some(answers) = &mut message.answers {
            answers.message += 1;
        }
    }
    messages.insert(9, said(10, Role::User, "and hurry"));
    let cut = extended(&PromptCut::default(), &messages, room(1_000, 2_000))
        .summarised("forty were looked at", 50);
    assert!(
        cut.left_out_through > 0 && cut.tokens_after <= 1_000,
        "{cut:?}"
    );
    let shown = cut.apply(messages.clone());
    let words: Vec<String> = shown
        .iter()
        .filter(|message| message.role == Role::User)
        .map(Message::text)
        .collect();
    assert_eq!(words, ["look everywhere", "and hurry"]);
    let notice = shown
        .iter()
        .find(|message| message.origin == ORIGIN)
        .unwrap();
    assert!(
        notice.text().contains("forty were looked at"),
        "{}",
        notice.text()
    );
    assert_eq!(
        shown[shown.len() - 4..],
        messages[messages.len() - 4..],
        "the newest stay word for word"
    );
}

#[test]
fn nothing_is_left_out_for_a_notice_that_is_longer() {
    let none = PromptCut::default();
    let cut = extended(&none, &turn(3, 100), room(10, 20));
    assert!(!cut.goes_beyond(&none), "{cut:?}");
    assert_eq!(cut.tokens_after, cut.tokens_before);
    let many = PromptCut {
        summary: Some("s".repeat(400)),
        ..none
    };
    let reported = tokens(&many.notice(u64::MAX));
    assert!(reported <= NOTICE_TOKENS + 100, "{reported}");
}

/// Four exchanges of 60 tokens each, of which two may go: hardly more than a notice and a summary.
#[test]
fn a_small_prompt_that_was_refused_is_cut_and_shorter_with_the_longest_summary() {
    let messages = turn(4, 200);
    let none = PromptCut::default();
    let before = estimated_tokens(&messages);
    let refused = Room::of(100_000, 1_000, 0).after_refusal(before);
    for summary in [0, refused.summary, 2_000] {
        let room = Room { summary, ..refused };
        let cut = extended(&none, &messages, room);
        assert_eq!(cut.left_out_through, 4, "{cut:?}");
        assert!(cut.tokens_after < before, "{cut:?}");
        let longest = cut.summary_room(messages.clone(), room);
        assert!(longest <= summary, "{longest}");
        let reported = cut.clone().summarised(&"s".repeat(8_000), longest);
        let shown = estimated_tokens(&reported.apply(messages.clone()));
        assert!(shown <= cut.tokens_after, "{shown}: {cut:?}");
        let again = room.after_refusal(cut.tokens_after);
        let harder = extended(&cut, &messages, again);
        assert!(!harder.goes_beyond(&cut), "nothing else may go");
    }
}

#[test]
fn a_call_without_a_result_is_never_left_out() {
    let mut messages = turn(10, 400);
    messages.remove(4);
    let cut = extended(&PromptCut::default(), &messages, room(10, 20));
    assert_eq!(cut.left_out_through, 2, "the call of message 4 is open");
}

/// One reply asked for everything at once: only as a last resort are its results cut.
#[test]
fn results_of_the_newest_exchange_become_stubs_last_and_the_newest_after_them() {
    let mut messages = vec![said(1, Role::User, "look everywhere"), calls(2, 20)];
    messages.extend((0..20).map(|index| result(3 + u64::from(index), 2, index, 4_000)));
    let cut = extended(&PromptCut::default(), &messages, room(3_000, 12_000));
    assert!(cut.tokens_after <= 12_000 && cut.left_out_through == 0);
    assert!(cut.stubs.len() < 12, "no more than needed: {:?}", cut.stubs);
    let cut = extended(&PromptCut::default(), &messages, room(10, 5_000));
    assert!(!cut.stubs.contains(&22), "the newest stays");
    let cut = extended(&PromptCut::default(), &messages, room(10, 20));
    assert!(cut.stubs.contains(&22), "it alone is too long");
}

/// The oldest first, and none that has hardly more than what is shown of it.
#[test]
fn a_message_of_the_user_that_is_too_long_is_shown_by_its_beginning_and_end() {
    let long = format!("begin {} end", "x".repeat(600_000));
    let messages = [
        said(1, Role::User, &long),
        said(2, Role::Assistant, "so"),
        said(3, Role::User, &"y".repeat(1_900)),
    ];
    let cut = extended(&PromptCut::default(), &messages, room(900, 1_500));
    assert!(cut.stubs.contains(&1) && !cut.stubs.contains(&3), "{cut:?}");
    assert!(cut.tokens_after <= 1_500, "{cut:?}");
    let shown = text_of(&cut.apply(messages.to_vec())[0].parts);
    assert!(
        shown.starts_with("[This message of 600010 bytes is too long") && shown.contains("begin x"),
        "{shown}"
    );
    assert!(shown.ends_with("x end") && shown.len() < 2_400, "{shown}");
}

#[test]
fn a_cut_that_leaves_nothing_out_changes_nothing() {
    let messages = turn(3, 100);
    let none = PromptCut::default();
    assert_eq!(none.apply(messages.clone()), messages);
    let cut = extended(&none, &messages, room(100_000, 100_000));
    assert!(!cut.goes_beyond(&none), "{cut:?}");
}

#[test]
fn a_cut_saves_the_tokens_by_which_it_makes_a_conversation_shorter() {
    let messages = turn(12, 4_000);
    for target in [100_000, 9_000, 4_500, 2_000] {
        let cut = extended(&PromptCut::default(), &messages, room(target, target));
        let cut = cut.summarised("a summary", 50);
        let shown = estimated_tokens(&cut.apply(messages.clone()));
        assert_eq!(
            cut.saved_tokens(&messages),
            estimated_tokens(&messages) - shown,
            "{cut:?}"
        );
    }
}

#[test]
fn without_a_summary_a_notice_says_what_is_missing() {
    let messages = turn(20, 800);
    let cut = extended(&PromptCut::default(), &messages, room(600, 900));
    let shown = cut.apply(messages);
    let notice = shown
        .iter()
        .find(|message| message.origin == ORIGIN)
        .unwrap();
    assert!(
        notice.text().contains("are not shown here") && notice.role == Role::Notice,
        "{}",
        notice.text()
    );
}

/// A part of a conversation.
#[derive(Debug, Clone)]
enum ConversationPart {
    Words(usize),
    Reply(usize),
    Calls(Vec<usize>),
    Notice(usize),
}

fn conversation_part() -> impl Strategy<Value = ConversationPart> {
    prop_oneof![
        (0_usize..2_000).prop_map(ConversationPart::Words),
        (0_usize..2_000).prop_map(ConversationPart::Reply),
        proptest::collection::vec(0_usize..9_000, 1..6).prop_map(ConversationPart::Calls),
        (0_usize..2_000).prop_map(ConversationPart::Notice),
    ]
}

/// The conversation of some chunks; the results of a reply's calls come behind it.
fn conversation(conversation_parts: &[ConversationPart]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for conversation_part in conversation_parts {
        let id = messages.len() as u64 + 1;
        match conversation_part {
            ConversationPart::Words(bytes) => {
                messages.push(said(id, Role::User, &"w".repeat(*bytes)))
            }
            ConversationPart::Reply(bytes) => {
                messages.push(said(id, Role::Assistant, &"r".repeat(*bytes)))
            }
            ConversationPart::Notice(bytes) => {
                messages.push(said(id, Role::Notice, &"n".repeat(*bytes)))
            }
            ConversationPart::Calls(results) => {
                messages.push(calls(id, u32::try_from(results.len()).unwrap()));
                for (index, bytes) in (0..).zip(results) {
                    messages.push(result(id + 1 + u64::from(index), id, index, *bytes));
                }
            }
        }
    }
    messages
}

/// The places of calls.
type Places = BTreeSet<(MessageId, u32)>;

/// Calls and results of some messages, as pairs of message and index.
fn pairs(messages: &[Message]) -> (Places, Places) {
    let made = messages
        .iter()
        .flat_map(|message| message.calls().map(|(index, ..)| (message.id, index)));
    let answered = messages
        .iter()
        .filter_map(|message| message.answers.as_ref())
        .map(|answers| (answers.message, answers.index));
    (made.collect(), answered.collect())
}

/// Returns whether a cut makes the prompt shorter if it changes it.
fn is_shorter(cut: &PromptCut, former: &PromptCut) -> bool {
    if cut.goes_beyond(former) {
        cut.tokens_after < cut.tokens_before
    } else {
        cut.tokens_after == cut.tokens_before
    }
}

proptest! {
    #[test]
    fn a_cut_never_parts_a_call_from_its_result_and_keeps_what_must_stay(
        conversation_parts in proptest::collection::vec(conversation_part(), 0..30),
        target in 0_u64..20_000,
        more in 0_u64..5_000,
    ) {
        let messages = conversation(&conversation_parts);
        let room = room(target, target + more);
        let cut = extended(&PromptCut::default(), &messages, room);
        let shown = arrange(cut.apply(messages.clone()));
        let (made, answered) = pairs(&shown);
        prop_assert_eq!(made, answered);
        // The user's words, word for word and in their order.
        let words = |messages: &[Message]| -> Vec<Message> {
            messages.iter().filter(|message| message.role == Role::User).cloned().collect()
        };
        prop_assert_eq!(words(&shown), words(&messages));
        // The newest replies, and the newest result.
        let replies = |messages: &[Message]| -> Vec<Message> {
            let replies = messages.iter().rev().filter(|message| message.role == Role::Assistant);
            replies.take(EXCHANGES_KEPT).cloned().collect()
        };
        prop_assert_eq!(replies(&shown), replies(&messages));
        let oldest_kept = replies(&messages).last().map_or(0, |reply| reply.id);
        let newest = messages.iter().rev().find(|message| message.answers.is_some());
        if let Some(newest) = newest.filter(|newest| place(newest) >= oldest_kept) {
            prop_assert!(shown.contains(newest) || cut.stubs.contains(&newest.id));
        }
        // The estimate is not below what is shown.
        prop_assert!(estimated_tokens(&shown) <= cut.tokens_after);
        prop_assert!(is_shorter(&cut, &PromptCut::default()), "{cut:?}");
        // Nothing is cut without need.
        if estimated_tokens(&messages) <= room.target {
            prop_assert!(!cut.goes_beyond(&PromptCut::default()));
        }
    }

    #[test]
    fn a_further_cut_contains_the_former_one_also_when_more_was_said(
        conversation_parts in proptest::collection::vec(conversation_part(), 1..20),
        more in proptest::collection::vec(conversation_part(), 0..10),
        target in 0_u64..10_000,
        harder in 0_u64..10_000,
        summary in 0_usize..200,
    ) {
        let before = conversation(&conversation_parts);
        let all: Vec<ConversationPart> = conversation_parts.iter().chain(&more).cloned().collect();
        let after = conversation(&all);
        let former = extended(&PromptCut::default(), &before, room(target, target))
            .summarised(&"s".repeat(summary), 50);
        let harder = target.min(harder);
        let cut = extended(&former, &after, room(harder, harder));
        prop_assert!(cut.stubs.is_superset(&former.stubs));
        prop_assert!(cut.left_out_through >= former.left_out_through);
        prop_assert!(is_shorter(&cut, &former), "{cut:?}");
        let shown = arrange(cut.apply(after.clone()));
        let (made, answered) = pairs(&shown);
        prop_assert_eq!(made, answered);
        // What a further summary is made of is left out now and was not before.
        for message in cut.newly_left_out(&former, &after) {
            prop_assert!(cut.leaves_out(&message) && !former.leaves_out(&message));
        }
        // The same again changes nothing.
        let again = extended(&cut, &after, room(cut.tokens_after, cut.tokens_after));
        prop_assert!(!again.goes_beyond(&cut));
    }
}
