//! Recall: words in, hits out, whatever the words are and whichever other users said them.

use super::purging::erase_all;
use super::sample::{NOON, Sample, agent, created, opened, run, session, take_turn};
use crate::PurgeItem;
use crate::fault::UNINDEXABLE_IN_TESTS;
use crate::sql::Columns;
use domain::event::{Event, NoteForgotten, NoteRemembered, SessionDeleted};
use domain::id::Stream;
use std::time::Duration;

pub(super) fn note(of: u128, text: &str) -> Event {
    let note = NoteRemembered {
        agent: agent(of),
        session: session(of),
        note: text.to_owned(),
        untrusted: true,
        id: None,
        about: None,
        provenance: None,
        time: NOON,
    };
    Event::NoteRemembered(note)
}

async fn sample() -> Sample {
    let sample = Sample::begun().await;
    sample
        .in_agent(
            2,
            [
                created(2, "/bob/assistant", None),
                note(2, "the dragon's secret"),
            ],
        )
        .await;
    sample.in_session(2, [opened(2, 2, None)]).await;
    sample
        .in_agent(1, [note(1, "prefers green tea to coffee")])
        .await;
    take_turn(
        &sample.store,
        1,
        None,
        1,
        "Where do dragons live?",
        "In the Élysée, near the coffee machine.",
    )
    .await;
    sample
}

#[tokio::test]
async fn what_was_said_and_what_was_remembered_is_found() {
    let sample = sample().await;
    let hits = sample.recall(1, "coffee", 10).await;
    assert_eq!(hits.len(), 2);
    let noted = hits.iter().find(|hit| hit.turn.is_none()).unwrap();
    assert_eq!(
        (noted.text.as_str(), noted.untrusted, noted.session),
        ("prefers green tea to coffee", true, session(1))
    );
    let said = hits.iter().find(|hit| hit.turn.is_some()).unwrap();
    assert_eq!(
        (said.message, said.text.as_str()),
        (Some(2), "In the Élysée, near the coffee machine.")
    );
    assert_eq!(
        sample.recall(1, "elysee", 10).await.len(),
        1,
        "accents do not matter"
    );
    assert_eq!(sample.recall(1, "coffee", 1).await.len(), 1);
}

#[tokio::test]
async fn what_was_said_in_a_deleted_session_is_not_found_and_what_was_remembered_is() {
    let sample = sample().await;
    let deleted = SessionDeleted {
        session: session(1),
        deleted_by: super::sample::ada(),
        time: NOON,
    };
    sample.in_session(1, [Event::SessionDeleted(deleted)]).await;
    let hits = sample.recall(1, "coffee", 10).await;
    assert_eq!(
        hits.iter().map(|hit| hit.text.as_str()).collect::<Vec<_>>(),
        ["prefers green tea to coffee"]
    );
    assert!(
        sample
            .search(&sample.sees_all().await, None, "coffee", 10)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn an_agent_finds_nothing_of_another_one() {
    let sample = sample().await;
    assert!(sample.recall(1, "secret", 10).await.is_empty());
    assert_eq!(sample.recall(2, "secret", 10).await.len(), 1);
    let other = agent(2).0.simple().to_string();
    for trick in [
        other.clone(),
        format!("agent : \"{other}\""),
        format!("\") OR agent : (\"{other}"),
        "secret\" OR agent : \"".to_owned(),
    ] {
        assert!(
            sample
                .store
                .recall(agent(1), None, &trick, 10)
                .await
                .unwrap()
                .iter()
                .all(|hit| hit.session == session(1)),
            "{trick}"
        );
    }
}

#[tokio::test]
async fn no_query_is_a_syntax_error() {
    let sample = sample().await;
    let queries = [
        "",
        " ",
        "\"",
        "\"\"",
        "'",
        "*",
        "coffee*",
        "AND",
        "coffee AND",
        "NOT coffee",
        "NEAR(coffee tea, 5)",
        "(",
        ")",
        "body:",
        "-",
        "^coffee",
        "{agent body} : x",
        "a\0b",
        "\0",
        "+",
        "coffee + tea",
        "🐉",
        "日本語",
        "%",
        "\\",
        ";DROP TABLE events",
        "\u{200b}",
        "\u{301}",
    ];
    for query in queries {
        sample
            .store
            .recall(agent(1), None, query, 10)
            .await
            .unwrap_or_else(|error| panic!("{query:?}: {error:?}"));
    }
    let long = "coffee ".repeat(10_000);
    assert_eq!(
        sample
            .store
            .recall(agent(1), None, &long, u32::MAX)
            .await
            .unwrap()
            .len(),
        2
    );
}

/// Rows whose words are in the index.
fn indexed(sample: &Sample) -> i64 {
    let connection = sample.connection();
    connection
        .query_row("SELECT count(*) FROM recall_index_docsize", [], |row| {
            row.get(0)
        })
        .unwrap()
}

#[tokio::test]
async fn no_commit_indexes_words_and_every_search_finds_them() {
    let sample = sample().await;
    assert_eq!(indexed(&sample), 0);
    assert_eq!(sample.recall(1, "dragons", 10).await.len(), 1);
    assert_eq!(indexed(&sample), 4, "with a search all of them are");
    take_turn(&sample.store, 1, None, 2, "And what of unicorns?", " ").await;
    assert_eq!(
        sample
            .search(&sample.sees_all().await, None, "unicorns", 10)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        indexed(&sample),
        5,
        "where nothing is said there is nothing to index"
    );
}

#[tokio::test]
async fn what_was_not_indexed_at_a_stop_is_indexed_after_it() {
    let sample = sample().await.reopen().await;
    let waiting = async {
        while indexed(&sample) < 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .expect("the writer indexes when it has nothing else to do");
    sample.is_sound().await;
}

#[tokio::test]
async fn a_purge_takes_what_is_indexed_and_what_is_not_yet() {
    let sample = sample().await;
    sample.recall(1, "coffee", 10).await;
    let before = *sample.durable().borrow();
    take_turn(
        &sample.store,
        1,
        None,
        2,
        "What do unicorns drink?",
        "Coffee as well.",
    )
    .await;
    for run in [1, 2] {
        let run = super::sample::run(run);
        let events = sample
            .stream(Stream::Session(session(1)), 0, 100)
            .await
            .unwrap();
        let committed = events.iter().find(
            |event| matches!(&event.event, Some(Event::TurnCommitted(it)) if it.turn.run == run),
        );
        let item = PurgeItem::Run {
            run,
            committed: committed.map(|event| event.position),
        };
        erase_all(&sample.store, Stream::Session(session(1)), item).await;
    }
    assert!(*sample.durable().borrow() > before);
    let hits = sample.recall(1, "coffee unicorns", 10).await;
    assert_eq!(
        hits.iter().map(|hit| hit.text.as_str()).collect::<Vec<_>>(),
        ["prefers green tea to coffee"]
    );
    assert_eq!(indexed(&sample), 2, "the notes");
    let connection = sample.connection();
    connection
        .execute(
            "INSERT INTO recall_index (recall_index) VALUES ('integrity-check')",
            [],
        )
        .unwrap();
}

/// Returns the words that a search for coffee finds, in the order of their texts.
async fn with_coffee(sample: &Sample) -> Vec<String> {
    let hits = sample.recall(1, "coffee", 10).await;
    let mut texts: Vec<String> = hits.into_iter().map(|hit| hit.text).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn words_over_which_indexing_panics_are_not_found_and_all_others_are() {
    let sample = Sample::begun().await;
    let turn = take_turn(
        &sample.store,
        1,
        None,
        1,
        "coffee before",
        &format!("coffee, and {UNINDEXABLE_IN_TESTS}"),
    )
    .await;
    sample.in_agent(1, [note(1, "coffee after")]).await;
    assert_eq!(
        with_coffee(&sample).await,
        ["coffee after", "coffee before"]
    );
    take_turn(&sample.store, 1, Some(&turn), 2, "coffee again", "tea").await;
    assert_eq!(
        with_coffee(&sample).await,
        ["coffee after", "coffee again", "coffee before"],
        "the writer lives"
    );
    let sample = sample.reopen().await;
    assert_eq!(
        with_coffee(&sample).await,
        ["coffee after", "coffee again", "coffee before"]
    );
    let rebuilt = sample.rebuild().await.unwrap();
    assert_eq!(
        (rebuilt.replaced, rebuilt.index_replaced),
        (Vec::new(), false)
    );
}

#[tokio::test]
async fn words_that_panic_in_the_index_do_not_end_the_process_after_a_start() {
    let sample = Sample::begun().await;
    take_turn(&sample.store, 1, None, 1, UNINDEXABLE_IN_TESTS, "coffee").await;
    sample
        .in_agent(1, [note(1, UNINDEXABLE_IN_TESTS), note(1, "coffee after")])
        .await;
    let sample = sample.reopen().await;
    let waiting = async {
        while indexed(&sample) < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .expect("the writer passes over the words that panic");
    sample.is_sound().await;
}

#[tokio::test]
async fn a_purge_of_words_that_could_not_be_indexed_leaves_the_index_whole() {
    let sample = Sample::begun().await;
    take_turn(
        &sample.store,
        1,
        None,
        1,
        "coffee before",
        &format!("coffee, and {UNINDEXABLE_IN_TESTS}"),
    )
    .await;
    sample.in_agent(1, [note(1, "coffee after")]).await;
    assert_eq!(
        with_coffee(&sample).await,
        ["coffee after", "coffee before"]
    );
    let events = sample
        .stream(Stream::Session(session(1)), 0, 100)
        .await
        .unwrap();
    let committed = events
        .iter()
        .find(|event| matches!(event.event, Some(Event::TurnCommitted(_))));
    let item = PurgeItem::Run {
        run: run(1),
        committed: committed.map(|event| event.position),
    };
    erase_all(&sample.store, Stream::Session(session(1)), item).await;
    assert_eq!(
        (with_coffee(&sample).await, indexed(&sample)),
        (vec!["coffee after".to_owned()], 1)
    );
    let connection = sample.connection();
    connection
        .execute(
            "INSERT INTO recall_index (recall_index) VALUES ('integrity-check')",
            [],
        )
        .unwrap();
}

/// The notes of the first agent.
async fn notes_of(sample: &Sample) -> Vec<crate::NoteRow> {
    sample.notes(agent(1), None, None, 10).await.unwrap()
}

#[tokio::test]
async fn a_forgotten_note_is_erased_and_another_agents_stays() {
    let sample = sample().await;
    let [noted]: [crate::NoteRow; 1] = notes_of(&sample).await.try_into().unwrap();
    assert_eq!(
        sample.note(agent(1), noted.id).await.unwrap(),
        Some(noted.clone())
    );
    assert_eq!(sample.note(agent(2), noted.id).await.unwrap(), None);
    let forget = |of: u128| {
        Event::NoteForgotten(NoteForgotten {
            agent: agent(of),
            note: noted.id,
            position: noted.position,
            session: session(1),
            user_id: super::sample::ada(),
            time: NOON,
        })
    };
    // An event of another stream erases nothing.
    sample.in_agent(2, [forget(2)]).await;
    let event = || async {
        let events = sample
            .stream(Stream::Agent(agent(1)), 0, 100)
            .await
            .unwrap();
        let found = events.into_iter().find(|it| it.position == noted.position);
        found.unwrap().event
    };
    assert!(event().await.is_some());
    sample.in_agent(1, [forget(1)]).await;
    assert!(event().await.is_none(), "what it said is gone");
    assert!(notes_of(&sample).await.is_empty());
    let hits = sample
        .recall_notes(agent(1), None, "tea", 10)
        .await
        .unwrap();
    assert!(hits.is_empty(), "{hits:?}");
    let theirs = sample
        .recall_notes(agent(2), None, "dragon", 10)
        .await
        .unwrap();
    assert_eq!(theirs.len(), 1);
    sample.is_sound().await;
}

#[tokio::test]
async fn words_that_stand_in_every_text_find_nothing_beside_others() {
    let sample = sample().await;
    let more = [
        "What to do: read notes.txt.",
        "The user's sister is called Ada.",
    ];
    let more = more.map(|text| note(1, text)).to_vec();
    sample.in_agent(1, more).await;
    let texts = async |query: &str| {
        let hits = sample
            .recall_notes(agent(1), None, query, 10)
            .await
            .unwrap();
        hits.into_iter().map(|hit| hit.text).collect::<Vec<_>>()
    };
    let sister = ["The user's sister is called Ada."];
    assert_eq!(texts("What is my sister called?").await, sister);
    assert_eq!(texts("Wie heißt die sister?").await, sister);
    // Where there is nothing else, they are looked for.
    let found = texts("what to do").await;
    assert_eq!(
        found.first().map(String::as_str),
        Some("What to do: read notes.txt.")
    );
}
