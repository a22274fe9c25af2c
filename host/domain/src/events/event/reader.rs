//! The version that tells how much of a store's content a program understands, beyond the kinds of
//! events.

/// The version of this program as a reader. A store names the oldest reader that it permits: that
/// of the newest program that opened it. An older one is refused, because it would read past fields
/// that it does not know, and do what they forbid.
///
/// It is raised whenever a field, or a new meaning of its absence, narrows what an agent or a user
/// may do: a deny, a limit, a mark, an end. A field that only adds information needs no new number.
/// Neither does a new kind of event, which an older program refuses to read. A test pins the fields
/// of what carries authority, so that none is added without a look at this.
///
/// | reader | what an older one would not have seen |
/// |---|---|
/// | 1 | nothing: the first that is named, with layout 12 of the database, which older programs refuse |
/// | 2 | the mark of a step that was shown the end of a session that rests on content from outside |
/// | 3 | the definitions that there were when a run began: it reaches agents of no others |
/// | 4 | the models that a definition, a persona or a path permits |
pub const READER: u64 = 4;

#[cfg(test)]
mod tests;
