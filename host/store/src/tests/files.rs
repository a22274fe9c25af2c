//! Files of sessions: numbered, kept once, within their limits, and known as what names their
//! blobs.

use super::sample::{NOON, Sample, commit, new, opened, session};
use crate::{Clash, Commit, CommitError, Expected, Guard, SessionGuard};
use domain::digest::Digest;
use domain::event::{Event, FileUploaded};
use domain::id::Stream;

pub(super) fn uploaded(in_session: u128, content: &[u8], name: &str) -> Event {
    Event::FileUploaded(FileUploaded {
        session: session(in_session),
        digest: Digest::of(content),
        name: name.to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: content.len() as u64,
        user_id: "ada".parse().unwrap(),
        time: NOON,
    })
}

fn handing_over(in_session: u128, content: &[u8], name: &str) -> Commit {
    commit(
        Stream::Session(session(in_session)),
        [uploaded(in_session, content, name)],
    )
    .blob(content.to_vec())
}

#[tokio::test]
async fn a_file_is_numbered_kept_once_and_one_of_its_session_alone() {
    let sample = Sample::begun().await;
    sample.in_session(2, [opened(2, 1, None)]).await;
    let store = &sample.store;
    for (content, name) in [
        (&b"one"[..], "a"),
        (b"two", "b"),
        (b"one", "a"),
        (b"one", "c"),
    ] {
        store.commit(handing_over(1, content, name)).await.unwrap();
    }
    store.commit(handing_over(2, b"three", "d")).await.unwrap();
    let names: Vec<String> = store
        .files(session(1))
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.file.name)
        .collect();
    assert_eq!(
        names,
        ["a", "b", "c"],
        "the same content under the same name is one file"
    );
    assert_eq!(
        (
            store.file_count(session(1)).await.unwrap(),
            store.file_count(session(9)).await.unwrap()
        ),
        (3, 0)
    );
    for (content, count, is) in [
        (&b"one"[..], 1, true),
        (b"two", 1, false),
        (b"two", 2, true),
        (b"three", 9, false),
        (b"never", 9, false),
    ] {
        assert_eq!(
            store
                .is_file(session(1), Digest::of(content), count)
                .await
                .unwrap(),
            is
        );
    }
    assert!(
        store.unnamed_blobs(10).await.unwrap().is_empty(),
        "each blob of a file is named by its event"
    );
    let rebuilt = store.rebuild().await.unwrap();
    assert_eq!(
        (
            rebuilt.replaced,
            store.files(session(1)).await.unwrap().len()
        ),
        (Vec::new(), 3)
    );
    assert_eq!(store.verify().await.unwrap().fault, None);
}

#[tokio::test]
async fn a_file_that_is_there_and_one_too_many_meet_their_guards() {
    let sample = Sample::begun().await;
    let store = &sample.store;
    let of = session(1);
    store.commit(handing_over(1, b"one", "a")).await.unwrap();
    let digest = Digest::of(b"one");
    let absent = |name: &str| {
        Guard::Session(SessionGuard::FileAbsent {
            session: of,
            digest,
            name: name.to_owned(),
        })
    };
    let at_most = |files, bytes| {
        Guard::Session(SessionGuard::FilesAtMost {
            session: of,
            files,
            bytes,
        })
    };
    for (guard, holds) in [
        (absent("a"), false),
        (absent("b"), true),
        (at_most(1, 3), true),
        (at_most(0, 3), false),
        (at_most(1, 2), false),
        (
            Guard::Session(SessionGuard::FilesAtMost {
                session: session(7),
                files: 0,
                bytes: 0,
            }),
            true,
        ),
    ] {
        let stream = Stream::Session(session(3));
        let tried = Commit::new().guard(guard.clone()).append(
            stream,
            Expected::Any,
            vec![new(super::sample::noise(1))],
        );
        match store.commit(tried).await {
            Ok(_) => assert!(holds, "{guard:?}"),
            Err(CommitError::Conflict(conflict)) => {
                assert_eq!((conflict.clash, holds), (Clash::Guard(guard), false))
            }
            Err(error) => panic!("{error}"),
        }
    }
}
