//! One acceptance of words, and the parts of its time, while no other is under way.

use crate::ingress::{MESSAGES, Sessions, WORDS};
use crate::measure::{Pair, median, us};
use crate::parts::{self, Span};
use crate::report::{Bar, Row};
use crate::shim;
use anyhow::Context;
use std::time::{Duration, Instant};

/// Asks for [`measure`] on a disk whose syncs take no time.
pub(crate) const FLAG: &str = "--acceptance-parts";
/// Sessions that are written to one after the other.
const SESSIONS_IN_LINE: usize = 16;

/// The rows that say where the time of one acceptance goes when no other is under way.
pub(crate) fn rows() -> anyhow::Result<Vec<Row>> {
    let [whole, statements, encoding, wake_ups] = shim::again(FLAG, Duration::ZERO)?
        .first_chunk()
        .copied()
        .context("four numbers were expected")?;
    let alone = Pair {
        ours: whole,
        peer: statements,
    };
    let mut rows = vec![Row::new(
        "one acceptance, no sync time / its statements",
        "µs",
        alone,
        Bar::Reported,
    )];
    rows.extend(parts::rows(
        whole,
        &[
            ("statements of its events", statements),
            ("encoding its events", encoding),
            ("handing its commit to the writer", wake_ups),
        ],
        "guards, blobs, keys, locks, wake-ups, lookups",
    ));
    Ok(rows)
}

/// Microseconds of one acceptance and of its parts: the statements of its events, encoding, and
/// handing the commit to the writer. To be asked for on a disk whose syncs take no time.
///
/// # Errors
/// The store's and the broker's.
pub(crate) async fn measure() -> anyhow::Result<[f64; 4]> {
    let busy = Sessions::busy(SESSIONS_IN_LINE).await?;
    let world = &busy.world;
    let durable = world.store().durable();
    let mut whole = Vec::new();
    let mut spans = Vec::new();
    let mut ends = Vec::new();
    for session in &busy.sessions {
        for _ in 0..MESSAGES {
            let before = *durable.borrow();
            let message = world.message("puppet", *session, WORDS, None);
            let began = Instant::now();
            world.broker.post_message(message).await?;
            whole.push(us(began.elapsed()));
            // What is accepted waits, so nothing else is committed meanwhile.
            let end = *durable.borrow();
            ends.extend([before, end]);
            spans.push(Span { before, end });
        }
    }
    let events = parts::events(world.store()).await?;
    world.broker.shutdown(Duration::ZERO).await;
    let stored = parts::commit_again(events, &ends, &spans).await?;
    Ok([
        median(&mut whole),
        stored.statements,
        stored.encoding,
        stored.wake_ups,
    ])
}
