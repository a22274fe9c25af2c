//! The number that says what a program understands of what is stored, beyond the kinds of events.

/// What this program is as a reader. A store names the oldest reader that it permits: that of the newest program that opened it. An older
/// one is refused, because it would read past fields that it does not know, and do what they forbid.
///
/// It is raised whenever a field, or a new meaning that its absence had, narrows what somebody may do: a deny, a limit, a mark, an end. A
/// field that only tells more needs no new number, and neither does a new kind of event, which an older program refuses to read.
///
/// | reader | what an older one would not have seen |
/// |---|---|
/// | 1 | nothing: the first that is named, with layout 12 of the database, which older programs refuse |
pub const READER: u64 = 1;
