//! The places at which a component sees its folders, and the paths that it opened elsewhere.

use domain::event::{BoundaryDecision, NOTHING_OPENED};
use std::collections::BTreeSet;

/// The place of a folder when nothing tells of another.
pub(super) const USUAL: &str = "/workspace";
/// Paths that are told one by one.
const PATHS_MAX: usize = 8;

/// The places of a component's folders, and what was opened elsewhere.
#[derive(Debug, Default)]
pub(super) struct Places {
    granted: BTreeSet<String>,
    /// Paths that are in none of the folders.
    elsewhere: BTreeSet<String>,
    /// True if a path was opened that is in one of the folders.
    found: bool,
    /// True if a call that failed opened nothing in the folders that it had.
    missed: bool,
}

impl Places {
    pub(super) fn new(granted: impl IntoIterator<Item = String>) -> Self {
        Self {
            granted: granted.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Forgets what was opened elsewhere.
    pub(super) fn forget(&mut self) {
        *self = Self::new(std::mem::take(&mut self.granted));
    }

    /// Adds a decision about files. Its detail is a path, or says why there was none.
    pub(super) fn take(&mut self, decision: &BoundaryDecision) {
        let detail = &decision.detail;
        if !detail.starts_with('/') {
            self.missed |= detail.starts_with(NOTHING_OPENED) && !self.granted.is_empty();
        } else if self.granted.iter().any(|at| is_within(detail, at)) {
            self.found = true;
        } else if (!self.granted.is_empty() || !is_within(detail, USUAL))
            && self.elsewhere.len() < PATHS_MAX
        {
            self.elsewhere.insert(detail.clone());
        }
    }

    /// The paths that are in none of the folders. The root is one of them only if nothing below it
    /// is: libraries open it on the way.
    fn opened(&self) -> impl Iterator<Item = &str> {
        let is_alone = self.elsewhere.len() == 1;
        let paths = self.elsewhere.iter().map(String::as_str);
        paths.filter(move |path| is_alone || *path != "/")
    }

    /// Returns the places at which a folder is missing.
    pub(super) fn missing(&self) -> Vec<String> {
        let places: BTreeSet<String> = self.opened().map(place_of).collect();
        places.into_iter().collect()
    }

    /// Returns the place at which the only folder should be, if all that was opened is at one other
    /// place. Of the root nobody knows whether it was meant.
    pub(super) fn moved(&self) -> Option<String> {
        let [place]: [String; 1] = self.missing().try_into().ok()?;
        let is_only = self.granted.len() == 1 && !self.found;
        Some(place).filter(|place| is_only && place != "/")
    }

    /// Returns what an operator should know about the places.
    pub(super) fn notes(&self) -> Vec<String> {
        let granted = self.granted.iter().cloned().collect::<Vec<_>>().join(", ");
        let none = if granted.is_empty() {
            "no folder is granted".to_owned()
        } else {
            format!("folders are only granted at {granted}")
        };
        let opened = self.opened().map(|path| {
            format!(
                "a call opened {path}, and {none}: the `at` of a folder is the beginning of the paths \
                 that the tool opens"
            )
        });
        let missed = (self.missed && self.elsewhere.is_empty()).then(|| {
            format!(
                "a call failed and opened nothing in its folders at {granted}: if it looked for a \
                 file elsewhere, grant a folder `at` the beginning of that path"
            )
        });
        opened.chain(missed).collect()
    }
}

fn is_within(path: &str, place: &str) -> bool {
    place == "/"
        || path
            .strip_prefix(place)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the place of a folder in which a path would be: its first segment, or the root if that
/// is a file by its name.
fn place_of(path: &str) -> String {
    let mut segments = path.trim_start_matches('/').split('/');
    match (segments.next(), segments.next()) {
        (Some(first), None) if first.is_empty() || first.contains('.') => "/".to_owned(),
        (Some(first), _) => format!("/{first}"),
        (None, _) => "/".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{BoundaryDecision, Places, place_of};
    use domain::event::BoundaryVerdict;
    use domain::ruling::Rule;

    fn decision(verdict: BoundaryVerdict, detail: &str) -> BoundaryDecision {
        BoundaryDecision {
            capability: "files.read".to_owned(),
            verdict,
            rule: Rule::Granted,
            times: 1,
            detail: detail.to_owned(),
        }
    }

    #[test]
    fn a_path_outside_of_the_folders_is_told_with_the_place_that_is_missing() {
        let mut places = Places::new(["/workspace".to_owned()]);
        for path in ["/workspace/a", "/workspaces/b", "/data/in/c.txt"] {
            places.take(&decision(BoundaryVerdict::Granted, path));
        }
        assert_eq!(places.missing(), ["/data", "/workspaces"]);
        let notes = places.notes();
        assert!(
            notes.len() == 2
                && notes[0].contains("/data/in/c.txt, and folders are only granted at /workspace"),
            "{notes:?}"
        );
        let mut none = Places::default();
        none.take(&decision(BoundaryVerdict::Granted, "/workspace/a"));
        assert!(none.missing().is_empty() && none.notes().is_empty());
    }

    #[test]
    fn a_call_that_opened_nothing_is_told_with_the_places_that_it_had() {
        let mut places = Places::new(["/workspace".to_owned()]);
        let detail = "nothing was opened in /workspace; a path elsewhere is in no granted folder";
        places.take(&decision(BoundaryVerdict::Granted, detail));
        let notes = places.notes();
        assert!(
            notes.len() == 1 && notes[0].contains("nothing in its folders at /workspace"),
            "{notes:?}"
        );
        let mut none = Places::default();
        none.take(&decision(BoundaryVerdict::Refused, "no folder is granted"));
        assert!(none.notes().is_empty());
    }

    #[test]
    fn the_root_is_no_place_that_is_missing_when_something_below_it_is() {
        let mut places = Places::default();
        places.take(&decision(BoundaryVerdict::Granted, "/"));
        assert_eq!(places.missing(), ["/"]);
        places.take(&decision(BoundaryVerdict::Granted, "/data/log"));
        assert_eq!(places.missing(), ["/data"]);
        assert_eq!(places.notes().len(), 1);
    }

    #[test]
    fn the_place_of_a_path_is_its_first_folder() {
        for (path, place) in [
            ("/data/x", "/data"),
            ("/data", "/data"),
            ("/x.txt", "/"),
            ("/", "/"),
        ] {
            assert_eq!(place_of(path), place);
        }
    }
}
