//! The version that states how much of a store's content a program understands, beyond the kinds of
//! events.

/// This program's version as a reader. A store names the oldest reader that it permits: that of the
/// newest program that opened it. An older reader is refused, because it would ignore fields that
/// it does not know, and do what they forbid.
///
/// From the first release on, raise it whenever a field, or a new meaning of its absence, narrows
/// what an agent or a user may do. Examples are a deny, a limit, a mark, an end. A field that only
/// adds information needs no new number. Neither does a new kind of event, which an older program
/// refuses to read. A test pins the fields of authority, so that nobody adds one without
/// considering this number.
///
/// | reader | what an older one would not have seen |
/// |---|---|
/// | 1 | nothing: it is the first |
pub const READER: u64 = 1;

#[cfg(test)]
mod tests;
