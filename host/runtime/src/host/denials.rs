//! What a guest was refused, noted for the operator.

/// Refusals that are noted of one call.
const DENIALS_MAX: usize = 32;
/// Bytes of one of them.
const DENIAL_BYTES_MAX: usize = 256;

/// The host functions that were refused during a call, each once.
#[derive(Debug, Default)]
pub(crate) struct Denials(Vec<String>);

impl Denials {
    /// Notes one refusal.
    pub(crate) fn note(&mut self, what: &str) {
        let (what, _) = what.split_at(what.floor_char_boundary(DENIAL_BYTES_MAX));
        let what = crate::log::escaped(what);
        if self.0.len() < DENIALS_MAX && !self.0.contains(&what) {
            self.0.push(what);
        }
    }

    /// All of them. Leaves nothing behind.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
    }
}
