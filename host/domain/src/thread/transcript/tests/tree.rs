//! Verdicts on turns, common ancestors and what threads have alone.

use super::story::{add, adoption, assistant, empty, story, user};
use crate::thread::message::{Answers, Draft, Part, Role};
use crate::thread::transcript::dialect::{Dialect, aix, detect, pi};
use crate::thread::transcript::{
    Break, BrokenThread, Label, Transcript, TranscriptTurn, Unwritable, Verification, verify,
};
use crate::thread::turn::TurnEnd;
use crate::values::digest::{Digest, Salt};
use crate::values::id::TurnId;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

fn verdicts(transcript: &Transcript) -> Vec<Verification> {
    let turns = transcript
        .turns
        .iter()
        .map(|turn| (&turn.node, turn.messages.as_slice()));
    verify(turns)
        .into_iter()
        .map(|(_, verdict)| verdict)
        .collect()
}

#[test]
fn a_turn_is_sound_or_erased_or_broken_in_a_way_that_is_said() {
    assert_eq!(
        verdicts(&story()),
        [
            Verification::Sound,
            Verification::Erased(vec![6]),
            Verification::Sound,
            Verification::Sound,
            Verification::Sound
        ]
    );
    let broken = |change: fn(&mut Transcript)| {
        let mut story = story();
        change(&mut story);
        let found: Vec<Verification> = verdicts(&story)
            .into_iter()
            .filter(|verdict| matches!(verdict, Verification::Broken(_)))
            .collect();
        assert!(story.check().is_err());
        found
    };
    let said = |story: &mut Transcript| {
        story.turns[0].messages[0]
            .as_mut()
            .unwrap()
            .parts
            .push(Part::text("more"))
    };
    assert_eq!(
        broken(said),
        [Verification::Broken(Break::Message { message: 1 })]
    );
    let salted =
        |story: &mut Transcript| story.turns[0].messages[1].as_mut().unwrap().salt = Salt([0; 16]);
    assert_eq!(
        broken(salted),
        [Verification::Broken(Break::Message { message: 2 })]
    );
    let moved = |story: &mut Transcript| story.turns[0].messages[1].as_mut().unwrap().id = 3;
    assert_eq!(
        broken(moved),
        [Verification::Broken(Break::MessagePlace {
            expected: 2,
            found: 3
        })]
    );
    let fewer = |story: &mut Transcript| drop(story.turns[0].messages.pop());
    assert_eq!(
        broken(fewer),
        [Verification::Broken(Break::Count {
            committed: 5,
            given: 4
        })]
    );
    let ended = |story: &mut Transcript| story.turns[3].node.end = TurnEnd::Replied;
    assert!(matches!(
        broken(ended)[..],
        [Verification::Broken(Break::Id { .. })]
    ));
    let jumped = |story: &mut Transcript| story.turns[3].node.jump = Some(story.turns[0].node.id);
    assert_eq!(broken(jumped), [Verification::Broken(Break::Jump)]);
    let deeper = |story: &mut Transcript| story.turns[3].node.depth = 9;
    assert_eq!(
        broken(deeper),
        [Verification::Broken(Break::Depth { expected: 3 })]
    );
    let later = |story: &mut Transcript| story.turns[3].node.first_message = 1;
    assert_eq!(
        broken(later),
        [Verification::Broken(Break::Span { first: 8, last: 8 })]
    );
    let twice = |story: &mut Transcript| story.turns.push(story.turns[0].clone());
    assert_eq!(broken(twice), [Verification::Broken(Break::Twice)]);
    let gone = |story: &mut Transcript| drop(story.turns.remove(1));
    assert!(matches!(
        broken(gone)[..],
        [Verification::Broken(Break::ParentMissing { .. })]
    ));
}

#[test]
fn threads_part_where_they_have_their_last_turn_in_common() {
    let story = story();
    let [first, left, right, left_end, head] =
        [0, 1, 2, 3, 4].map(|place| story.turns[place].node.id);
    let tree = story.tree();
    for (a, b, common) in [
        (left_end, head, first),
        (left, left_end, left),
        (head, right, right),
        (head, head, head),
        (first, head, first),
        (left, right, first),
    ] {
        assert_eq!(tree.common_ancestor(a, b), Ok(Some(common)));
        assert_eq!(tree.common_ancestor(b, a), Ok(Some(common)));
    }
    let nobody = TurnId(Digest([9; 32]));
    assert_eq!(
        tree.common_ancestor(head, nobody),
        Err(BrokenThread::Missing { turn: nobody })
    );
    let messages = |turn: TurnId| {
        story
            .turns
            .iter()
            .find(|other| other.node.id == turn)
            .unwrap()
            .messages
            .as_slice()
    };
    let diff = tree.diff(left_end, head, messages).unwrap();
    assert_eq!(diff.common_ancestor, Some(first));
    assert_eq!(
        diff.only_in_a
            .iter()
            .map(|reported| reported.turn)
            .collect::<Vec<_>>(),
        [left, left_end]
    );
    assert_eq!(
        diff.only_in_b
            .iter()
            .map(|reported| reported.turn)
            .collect::<Vec<_>>(),
        [right, head]
    );
    assert_eq!(
        diff.only_in_a[0].messages,
        [(Role::Assistant, "A note.".to_owned())],
        "the user's was erased"
    );
    assert_eq!(
        diff.only_in_b[0].messages[3],
        (Role::Notice, "The turn was cancelled.".to_owned())
    );
    assert_eq!(
        serde_json::to_value(&diff).unwrap()["only_in_b"][1]["messages"],
        serde_json::json!([])
    );
}

/// Two branches of every length from every turn of a trunk, against walking by hand.
#[test]
fn the_common_ancestor_of_far_turns_is_found_over_jumps() {
    let mut made = empty();
    let mut trunk = vec![add(&mut made, None, TurnEnd::Replied, vec![user("root")])];
    for place in 1..70 {
        trunk.push(add(
            &mut made,
            trunk.last().copied(),
            TurnEnd::Replied,
            vec![user(&place.to_string()), assistant(vec![])],
        ));
    }
    for fork in [0, 1, 6, 30, 62, 69] {
        let mut branch = trunk[fork];
        for step in 0..40 {
            branch = add(
                &mut made,
                Some(branch),
                TurnEnd::Replied,
                vec![user(&format!("{fork}/{step}"))],
            );
        }
        let tree = made.tree();
        for at in [0, 3, 31, 69] {
            assert_eq!(
                tree.common_ancestor(trunk[at], branch),
                Ok(Some(trunk[at.min(fork)])),
                "{at} and the branch from {fork}"
            );
        }
    }
    let other = add(
        &mut made,
        None,
        TurnEnd::Replied,
        vec![user("another root")],
    );
    assert_eq!(made.tree().common_ancestor(other, trunk[69]), Ok(None));
    assert!(made.check().is_ok());
}

#[test]
fn a_circle_is_no_thread() {
    let mut story = story();
    let first = story.turns[0].node.id;
    let head = story.header.head.unwrap();
    story.turns[0].node.parent = Some(head);
    assert_eq!(
        story.tree().thread(head).unwrap_err(),
        BrokenThread::Depth {
            turn: first,
            depth: 1
        }
    );
    assert!(
        story
            .tree()
            .common_ancestor(head, first)
            .is_ok_and(|common| common == Some(first))
    );
    assert!(matches!(
        story.thread(head),
        Err(BrokenThread::Depth { .. })
    ));
}

// Any transcript is read as what was written, and written the same again.

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z \"\\\\{}\n]{0,12}",
        "\\PC{0,8}",
        Just("\u{0}\u{1f}\r\n\u{2028}".to_owned())
    ]
}

fn json_value() -> impl Strategy<Value = Value> {
    // Eighths are exact in binary; any other number has a test of its own.
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|eighths| json!(f64::from(eighths) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn part() -> impl Strategy<Value = (Part, Option<Vec<u8>>)> {
    let blob = (
        vec(any::<u8>(), 0..20),
        any::<bool>(),
        prop_oneof![Just("image/png"), Just("text/plain")],
    );
    prop_oneof![
        text().prop_map(|text| (Part::Text { text }, None)),
        (text(), text(), text()).prop_map(|(call_id, name, arguments)| (
            Part::Call {
                call_id,
                name,
                arguments
            },
            None
        )),
        (text(), text(), json_value()).prop_map(|(provider, model, value)| (
            Part::Opaque {
                provider,
                model,
                value
            },
            None
        )),
        blob.prop_map(|(bytes, travels, media_type)| {
            let part = Part::Blob {
                digest: Digest::of(&bytes),
                media_type: media_type.into(),
                size: bytes.len() as u64,
            };
            (part, travels.then_some(bytes))
        }),
    ]
}

type Spoken = (Draft, Vec<Vec<u8>>, bool);

fn message() -> impl Strategy<Value = Spoken> {
    let role = prop_oneof![
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Tool),
        Just(Role::Notice)
    ];
    let answers = proptest::option::of((0..9_u64, 0..3_u32, text(), text(), any::<bool>()));
    (
        role,
        vec(part(), 0..4),
        text(),
        any::<bool>(),
        answers,
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(role, parts, origin, untrusted, answers, erased)| {
            let (parts, bytes): (Vec<Part>, Vec<Option<Vec<u8>>>) = parts.into_iter().unzip();
            let answers = answers.map(|(message, index, call_id, name, failed)| Answers {
                message,
                index,
                call_id,
                name,
                failed,
            });
            (
                Draft {
                    role,
                    parts,
                    origin,
                    untrusted,
                    speaker: None,
                    answers,
                },
                bytes.into_iter().flatten().collect(),
                erased,
            )
        })
}

fn end() -> impl Strategy<Value = TurnEnd> {
    prop_oneof![
        Just(TurnEnd::Replied),
        Just(TurnEnd::Completed),
        Just(TurnEnd::Failed),
        Just(TurnEnd::Aborted)
    ]
}

/// Trees of up to eight turns.
fn transcripts() -> impl Strategy<Value = Transcript> {
    let turn = (any::<prop::sample::Index>(), end(), vec(message(), 0..4));
    (
        vec(turn, 0..8),
        proptest::option::of(any::<prop::sample::Index>()),
        proptest::option::of("[a-zé]{1,9}"),
    )
        .prop_map(|(turns, head, name)| {
            let mut made = empty();
            made.header.name = name;
            for (parent, end, spoken) in turns {
                let parents: Vec<_> = made
                    .turns
                    .iter()
                    .map(|turn| Some(turn.node.id))
                    .chain([None])
                    .collect();
                let erased: Vec<bool> = spoken.iter().map(|(.., erased)| *erased).collect();
                let blobs: Vec<Vec<u8>> = spoken
                    .iter()
                    .zip(&erased)
                    .filter(|(_, erased)| !**erased)
                    .flat_map(|((_, blobs, _), _)| blobs.clone())
                    .collect();
                made.blobs
                    .extend(blobs.into_iter().map(|bytes| (Digest::of(&bytes), bytes)));
                let drafts = spoken.into_iter().map(|(draft, ..)| draft).collect();
                add(&mut made, *parent.get(&parents), end, drafts);
                let messages = &mut made.turns.last_mut().unwrap().messages;
                messages
                    .iter_mut()
                    .zip(erased)
                    .filter(|(_, erased)| *erased)
                    .for_each(|(message, _)| *message = None);
            }
            if let Some(head) = head.filter(|_| !made.turns.is_empty()) {
                let turn = head.get(&made.turns).node.id;
                made.header.head = Some(turn);
                made.header.labels.push(Label {
                    turn,
                    label: "here".into(),
                });
            }
            made
        })
}

proptest! {
    #[test]
    fn any_tree_is_read_as_what_was_written_for_pi(transcript in transcripts()) {
        let file = pi::write(&transcript).unwrap();
        prop_assert_eq!(detect(&file), Ok(Dialect::Pi));
        let reading = pi::read(&file, &adoption()).unwrap();
        prop_assert_eq!(&reading.transcript, &transcript);
        prop_assert_eq!(pi::write(&reading.transcript).unwrap(), file);
    }

    #[test]
    fn any_thread_is_read_as_what_was_written_for_aix(transcript in transcripts()) {
        for turn in &transcript.turns {
            let thread = transcript.thread(turn.node.id).unwrap();
            let file = aix::write(&thread).unwrap();
            prop_assert_eq!(detect(&file), Ok(Dialect::Aix));
            let reading = aix::read(&file, &adoption()).unwrap();
            prop_assert_eq!(&reading.transcript, &thread);
            prop_assert_eq!(aix::write(&reading.transcript).unwrap(), file);
        }
    }

    /// A number is read as what it was, or not written.
    #[test]
    fn no_number_is_read_as_its_neighbour(number in any::<f64>().prop_filter("JSON has no other", |number| number.is_finite())) {
        let mut made = empty();
        let part = Part::Opaque { provider: "p".into(), model: "m".into(), value: json!({ "number": number }) };
        add(&mut made, None, TurnEnd::Replied, vec![assistant(vec![part])]);
        match pi::write(&made) {
            Ok(file) => prop_assert_eq!(pi::read(&file, &adoption()).unwrap().transcript, made),
            Err(Unwritable::Number { .. }) => {}
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    /// Nothing that can be cut out, doubled or changed by a byte is taken for what was written.
    #[test]
    fn no_changed_file_is_taken_as_the_same(transcript in transcripts(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut file = pi::write(&transcript).unwrap();
        let place = at.index(file.len());
        let was = std::mem::replace(&mut file[place], byte);
        let read = pi::read(&file, &adoption());
        // What stands in one record alone, such as the name of its agent, reads as something else
        // and not as the same.
        prop_assert!(byte == was || !read.is_ok_and(|reading| reading.exact && reading.transcript == transcript));
    }

    /// A session as pi's users see it can be taken over where its records are no longer true.
    #[test]
    fn the_turns_of_a_foreign_file_are_the_same_each_time(texts in vec("[a-z]{1,5}", 1..6)) {
        let mut made = empty();
        let mut parent = None;
        for text in &texts {
            let drafts = vec![user(text), assistant(vec![Part::text(text)])];
            parent = Some(add(&mut made, parent, TurnEnd::Replied, drafts));
        }
        made.header.head = parent;
        let ours = |turn: &TranscriptTurn| turn.messages.iter().flatten().map(|message| message.text()).collect::<Vec<_>>();
        for (a, b) in [
            (pi::read_foreign(&pi::write(&made).unwrap(), &adoption()), pi::read_foreign(&pi::write(&made).unwrap(), &adoption())),
            (aix::read_foreign(&aix::write(&made).unwrap(), &adoption()), aix::read_foreign(&aix::write(&made).unwrap(), &adoption())),
        ] {
            let a = a.unwrap().transcript;
            let b = b.unwrap().transcript;
            prop_assert_eq!(&a, &b);
            prop_assert_eq!(a.turns.iter().map(ours).collect::<Vec<_>>(), made.turns.iter().map(ours).collect::<Vec<_>>());
            prop_assert_eq!(pi::read(&pi::write(&a).unwrap(), &adoption()).unwrap().transcript, a);
        }
    }
}
