//! Notes and readings: what is due, how much there is, and what was handed over.

use super::sample::{NOON, Sample, begin, session};
use domain::event::{Event, MemoryDue};
use domain::id::Stream;
use domain::time::Timestamp;

fn due(due: Option<Timestamp>) -> Event {
    Event::MemoryDue(MemoryDue {
        session: session(1),
        due,
        time: NOON,
    })
}

#[tokio::test]
async fn the_row_of_a_session_says_when_it_is_to_be_read() {
    let sample = Sample::new();
    begin(&sample).await;
    for time in [None, Some(NOON), Some(NOON.plus_ms(5)), None] {
        sample
            .append(Stream::Session(session(1)), vec![due(time)])
            .await;
        let row = sample.store.session(session(1)).await.unwrap().unwrap();
        assert_eq!(row.memory_due, time);
    }
}
