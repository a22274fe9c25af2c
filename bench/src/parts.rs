//! The parts of the time that something takes. Each is measured by doing that part alone once more,
//! with the very events that were committed.

use crate::measure::{Pair, median, us};
use crate::report::{Bar, Row};
use anyhow::Context;
use domain::digest::Salt;
use domain::event::{NewEvent, Recorded};
use domain::id::Stream;
use std::time::Instant;
use store::{Append, Commit, EventFilter, Expected, Options, Store};

/// Events that are read back at once: more than any of these benchmarks stores.
const EVENTS_MAX: usize = 1_000_000;

/// The events of one repetition of what is measured: those between two positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// Position of the last event before it.
    pub(crate) before: u64,
    /// Position of its last event.
    pub(crate) end: u64,
}

impl Span {
    fn has(self, position: u64) -> bool {
        self.before < position && position <= self.end
    }
}

/// Returns the index of the span that an event belongs to.
pub(crate) fn span_at(spans: &[Span], position: u64) -> Option<usize> {
    spans.iter().position(|span| span.has(position))
}

/// Repetitions of what is measured, of which the whole and its parts are told.
#[derive(Debug, Default)]
pub(crate) struct Repetitions {
    /// Microseconds of each.
    pub(crate) whole: Vec<f64>,
    pub(crate) spans: Vec<Span>,
    /// The ends of commits, also of those that belong to no span: their events are committed again
    /// too.
    pub(crate) ends: Vec<u64>,
}

impl Repetitions {
    /// Divides their time into its parts, given all events of their store.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn divide(mut self, events: Vec<Recorded>) -> anyhow::Result<Division> {
        let [commits, encoding, wake_ups] = commit_again(events, &self.ends, &self.spans).await?;
        Ok(Division {
            whole: median(&mut self.whole),
            commits,
            encoding,
            wake_ups,
        })
    }
}

/// Microseconds that something takes, and those of the store's parts of it. Each is the median of
/// all repetitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Division {
    /// All of it.
    pub(crate) whole: f64,
    /// Committing the events once more.
    pub(crate) commits: f64,
    /// Serialising the events, and their digests.
    encoding: f64,
    /// The way to the writer's thread and back, with an empty transaction.
    wake_ups: f64,
}

impl Division {
    /// Reads what another process has told as [`Self::numbers`].
    pub(crate) fn from_numbers([whole, commits, encoding, wake_ups]: [f64; 4]) -> Self {
        Self {
            whole,
            commits,
            encoding,
            wake_ups,
        }
    }

    /// Returns it as numbers, for the process that has started this one.
    pub(crate) fn numbers(self) -> [f64; 4] {
        [self.whole, self.commits, self.encoding, self.wake_ups]
    }

    /// A row for each part, with some that are not the store's, and one for what they leave of the
    /// whole. Each stands beside the whole.
    pub(crate) fn rows(self, others: &[(&str, f64)], left: &str) -> Vec<Row> {
        let peer = self.whole;
        // Medians may sum to more than the whole.
        let row = |name: String, taken: Option<f64>| {
            let (name, ours) = match taken {
                Some(taken) => (name, taken),
                None => (format!("{name} (parts sum to more)"), 0.0),
            };
            Row::new(name, "µs", Pair { ours, peer }, Bar::Reported)
        };
        let statements = rest(self.commits, &[self.encoding, self.wake_ups]);
        let mut parts = vec![
            ("statements of its events", statements),
            ("encoding its events", Some(self.encoding)),
            ("handing over to the writer", Some(self.wake_ups)),
        ];
        parts.extend(others.iter().map(|(name, taken)| (*name, Some(*taken))));
        let taken: Vec<f64> = parts.iter().filter_map(|(_, taken)| *taken).collect();
        parts
            .iter()
            .map(|(name, taken)| row(format!("of that: {name}"), *taken))
            .chain([row(format!("the rest: {left}"), rest(peer, &taken))])
            .collect()
    }
}

/// Returns all events of a store, in order.
///
/// # Errors
/// The store's.
pub(crate) async fn events(store: &Store) -> anyhow::Result<Vec<Recorded>> {
    let filter = EventFilter::default();
    Ok(store.events(0, filter, EVENTS_MAX).await?)
}

/// Commits the events of a store once more, to a new one, in groups that end where their commits
/// ended. Whoever decided on them takes no part in that. Returns the microseconds of the commits,
/// of encoding alone, and of empty commits, each the median of all spans.
async fn commit_again(
    events: Vec<Recorded>,
    ends: &[u64],
    spans: &[Span],
) -> anyhow::Result<[f64; 3]> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("data"), Options::default())?;
    let mut commits = vec![0.0; spans.len()];
    let mut encoding = commits.clone();
    let mut wake_ups = commits.clone();
    for group in grouped(events, |event| event.position, ends) {
        let span = group
            .first()
            .and_then(|event| span_at(spans, event.position));
        let commit = same_commit(group)?;
        let copy = commit.clone();
        let began = Instant::now();
        copy.encoded_bytes()?;
        let encoded = us(began.elapsed());
        let began = Instant::now();
        store.commit(Commit::new()).await?;
        let woken = us(began.elapsed());
        let began = Instant::now();
        store.commit(commit).await?;
        let committed = us(began.elapsed());
        for (sums, taken) in [
            (&mut commits, committed),
            (&mut encoding, encoded),
            (&mut wake_ups, woken),
        ] {
            if let Some(sum) = span.and_then(|span| sums.get_mut(span)) {
                *sum += taken;
            }
        }
    }
    store.close().await;
    Ok([&mut commits, &mut encoding, &mut wake_ups].map(|sums| median(sums)))
}

/// Divides things that have positions, in order, into groups that end at some positions, in order.
/// Events after the last of them are a group of their own.
fn grouped<T>(
    things: impl IntoIterator<Item = T>,
    position: impl Fn(&T) -> u64,
    ends: &[u64],
) -> Vec<Vec<T>> {
    let mut groups: Vec<(usize, Vec<T>)> = Vec::new();
    for thing in things {
        let position = position(&thing);
        let at = ends.partition_point(|end| *end < position);
        match groups.last_mut() {
            Some((last, group)) if *last == at => group.push(thing),
            _ => groups.push((at, vec![thing])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Returns the commit of some events, without the guards and the blobs that it had.
fn same_commit(events: Vec<Recorded>) -> anyhow::Result<Commit> {
    let mut commit = Commit::new();
    for recorded in events {
        let stream: Stream = recorded.stream.parse()?;
        let event = NewEvent {
            id: recorded.id,
            event: recorded.event.context("an event was erased")?,
            subject: recorded.subject,
            actor: recorded.actor,
            causation: recorded.causation,
            correlation: recorded.correlation,
            time: recorded.time,
            salt: Salt::default(),
        };
        match commit.appends.last_mut() {
            Some(append) if append.stream == stream => append.events.push(event),
            _ => commit.appends.push(Append {
                stream,
                expected: Expected::Any,
                events: vec![event],
            }),
        }
    }
    Ok(commit)
}

/// Returns what the parts leave of a whole; none if they sum to more, as medians may.
fn rest(whole: f64, parts: &[f64]) -> Option<f64> {
    let rest = whole - parts.iter().sum::<f64>();
    (rest >= 0.0).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::{Division, Span, grouped, rest, same_commit, span_at};
    use crate::thread::new;
    use crate::view::NOON;
    use domain::digest::Digest;
    use domain::event::{Event, PluginEmitted, Recorded, Subject};
    use domain::id::{SessionId, Stream};
    use serde_json::json;
    use uuid::Uuid;

    fn recorded(position: u64, stream: Stream) -> Recorded {
        let emitted = Event::PluginEmitted(PluginEmitted {
            name: "plugin.bench.event".to_owned(),
            data: json!({ "at": position }),
        });
        let event = new(emitted, Subject::default());
        Recorded {
            position,
            stream: stream.to_string(),
            version: position,
            id: event.id,
            kind: "plugin.emitted".to_owned(),
            event: Some(event.event),
            subject: event.subject,
            actor: event.actor,
            causation: event.causation,
            correlation: event.correlation,
            time: NOON,
            hash: Digest([0; 32]),
        }
    }

    #[test]
    fn events_are_grouped_by_where_their_commits_ended() {
        let at = |position: &u64| *position;
        assert_eq!(
            grouped(1..=6, at, &[2, 2, 3, 5]),
            [vec![1, 2], vec![3], vec![4, 5], vec![6]]
        );
        // An end before the first event, and one at which nothing ended, make no group.
        assert_eq!(grouped([4, 5], at, &[3, 9]), [vec![4, 5]]);
        assert!(grouped([], at, &[3]).is_empty());
    }

    #[test]
    fn a_commit_is_made_again_with_its_events_in_order() {
        let session = Stream::Session(SessionId(Uuid::from_u128(1)));
        let events = [(1, session), (2, session), (3, Stream::Host), (4, session)]
            .map(|(position, stream)| recorded(position, stream));
        let ids: Vec<_> = events.iter().map(|event| event.id).collect();
        let again = same_commit(events.into()).unwrap();
        let appended: Vec<_> = again
            .appends
            .iter()
            .map(|append| (append.stream, append.events.len()))
            .collect();
        assert_eq!(appended, [(session, 2), (Stream::Host, 1), (session, 1)]);
        let of_commit: Vec<_> = again
            .appends
            .iter()
            .flat_map(|append| &append.events)
            .map(|event| event.id)
            .collect();
        assert_eq!(of_commit, ids);
        assert!(again.encoded_bytes().unwrap() > 0);
        let erased = Recorded {
            event: None,
            ..recorded(5, session)
        };
        assert!(same_commit(vec![erased]).is_err());
    }

    #[test]
    fn an_event_belongs_to_the_span_that_ends_with_it_or_after_it() {
        let spans = [Span { before: 2, end: 5 }, Span { before: 7, end: 9 }];
        let found = [2, 3, 5, 6, 8, 10].map(|position| span_at(&spans, position));
        assert_eq!(found, [None, Some(0), Some(0), None, Some(1), None]);
    }

    /// Returns the names and the figures of the rows of 10 microseconds, divided.
    fn reported(commits: f64, others: &[(&str, f64)]) -> Vec<(String, f64)> {
        let division = Division::from_numbers([10.0, commits, 2.0, 1.0]);
        assert_eq!(division.numbers(), [10.0, commits, 2.0, 1.0]);
        division
            .rows(others, "locks")
            .iter()
            .map(|row| serde_json::to_value(row).unwrap())
            .map(|row| {
                assert_eq!([&row["peer"], &row["bar"]], [&json!(10.0), &json!("-")]);
                let name = row["name"].as_str().unwrap().to_owned();
                (name, row["ours"].as_f64().unwrap())
            })
            .collect()
    }

    /// The rows of encoding and of the way to the writer, which the division has as 2 and 1.
    fn measured() -> [(String, f64); 2] {
        [
            ("of that: encoding its events".to_owned(), 2.0),
            ("of that: handing over to the writer".to_owned(), 1.0),
        ]
    }

    #[test]
    fn a_whole_is_told_by_its_parts_and_what_they_leave() {
        let [encoding, wake_ups] = measured();
        assert_eq!(
            reported(7.0, &[("steps", 1.0)]),
            [
                ("of that: statements of its events".to_owned(), 4.0),
                encoding,
                wake_ups,
                ("of that: steps".to_owned(), 1.0),
                ("the rest: locks".to_owned(), 2.0),
            ]
        );
    }

    #[test]
    fn a_rest_below_nothing_is_reported_as_nothing_with_a_note() {
        assert_eq!(rest(10.0, &[3.0, 4.0]), Some(3.0));
        assert_eq!(rest(10.0, &[10.0]), Some(0.0));
        assert_eq!(rest(10.0, &[7.0, 4.0]), None);
        assert_eq!(
            reported(11.0, &[]).last(),
            Some(&("the rest: locks (parts sum to more)".to_owned(), 0.0))
        );
    }

    #[test]
    fn statements_below_nothing_are_reported_as_nothing_with_a_note() {
        let [encoding, wake_ups] = measured();
        assert_eq!(
            reported(2.5, &[]),
            [
                (
                    "of that: statements of its events (parts sum to more)".to_owned(),
                    0.0
                ),
                encoding,
                wake_ups,
                ("the rest: locks".to_owned(), 7.0),
            ]
        );
    }
}
