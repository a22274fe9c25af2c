//! Verdicts on turns, common ancestors and what threads have alone.

use super::story::{add, assistant, empty, story, user};
use crate::thread::message::{Part, Role};
use crate::thread::transcript::{Break, BrokenThread, Transcript, Verification, verify};
use crate::thread::turn::TurnEnd;
use crate::values::digest::{Digest, Salt};
use crate::values::id::TurnId;

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
