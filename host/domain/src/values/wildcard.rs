//! Matching with a wildcard for any run, whatever the run is made of: characters of a name or parts
//! of a path.

/// Returns whether a pattern covers a whole text. `any` says of an element of the pattern whether
/// it stands for a run of elements, none too. `one` says whether an element of the pattern covers
/// one of the text. The search is greedy, with one place to come back to: at most pattern times
/// text comparisons.
pub(crate) fn matches<P, T>(
    pattern: &[P],
    text: &[T],
    any: impl Fn(&P) -> bool,
    one: impl Fn(&P, &T) -> bool,
) -> bool {
    let mut p = 0;
    let mut t = 0;
    let mut retry = None;
    while let Some(element) = text.get(t) {
        match pattern.get(p) {
            Some(wanted) if any(wanted) => {
                retry = Some((p, t));
                p += 1;
            }
            Some(wanted) if one(wanted, element) => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((run, from)) = retry else {
                    return false;
                };
                retry = Some((run, from + 1));
                p = run + 1;
                t = from + 1;
            }
        }
    }
    pattern.iter().skip(p).all(any)
}
