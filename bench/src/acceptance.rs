//! One acceptance of words, and the parts of its time, while no other is under way.

use crate::ingress::{MESSAGES, Sessions, WORDS};
use crate::measure::{Pair, us};
use crate::parts::{self, Division, Repetitions, Span};
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
    let reported = shim::again(FLAG, Duration::ZERO)?;
    let numbers = reported.first_chunk().copied();
    let division = Division::from_numbers(numbers.context("four numbers were expected")?);
    let alone = Pair {
        ours: division.whole,
        peer: division.commits,
    };
    let mut rows = vec![Row::new(
        "one acceptance, no sync time / committing its events",
        "µs",
        alone,
        Bar::Reported,
    )];
    rows.extend(division.rows(&[], "guards, blobs, keys, locks, wake-ups, lookups"));
    Ok(rows)
}

/// Microseconds of one acceptance, divided. To be asked for on a disk whose syncs take no time.
///
/// # Errors
/// The store's and the broker's.
pub(crate) async fn measure() -> anyhow::Result<[f64; 4]> {
    let busy = Sessions::busy(SESSIONS_IN_LINE).await?;
    let world = &busy.world;
    let durable = world.store().durable();
    let mut acceptances = Repetitions::default();
    for session in &busy.sessions {
        for _ in 0..MESSAGES {
            let before = *durable.borrow();
            let message = world.message("puppet", *session, WORDS, None);
            let began = Instant::now();
            world.broker.messages().post(message).await?;
            acceptances.whole.push(us(began.elapsed()));
            // What is accepted waits, so nothing else is committed meanwhile.
            let end = *durable.borrow();
            acceptances.ends.extend([before, end]);
            acceptances.spans.push(Span { before, end });
        }
    }
    let events = parts::events(world.store()).await?;
    world.broker.shutdown(Duration::ZERO).await;
    Ok(acceptances.divide(events).await?.numbers())
}
