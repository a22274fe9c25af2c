//! Any transcript is read as what was written, and written the same again.

use super::story::{add, adoption, empty};
use crate::thread::message::{Answers, Draft, Part, Role};
use crate::thread::transcript::dialect::{Dialect, aix, detect, pi};
use crate::thread::transcript::{Label, Transcript, TranscriptTurn, Unwritable};
use crate::thread::turn::TurnEnd;
use crate::values::digest::Digest;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

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
        add(&mut made, None, TurnEnd::Replied, vec![super::story::assistant(vec![part])]);
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
            let drafts = vec![super::story::user(text), super::story::assistant(vec![Part::text(text)])];
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
