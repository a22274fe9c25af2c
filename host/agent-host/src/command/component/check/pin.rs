//! The pinning of components, and other code that their grants went to.

use crate::client::Client;
use crate::command::component::pin_line;
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, text};
use broker::Entry;
use domain::event::ComponentAdmitted;
use serde_json::Value;
use store::{OpenError, admissions_at_rest};

/// The components as they were admitted last, by a host that runs or one that is stopped.
#[derive(Debug, Default)]
pub(super) struct Admissions {
    is_running: bool,
    last: Vec<Admission>,
}

/// The last admission of one component.
#[derive(Debug)]
struct Admission {
    component: String,
    code: String,
    /// Other code that was admitted before, if no digest in the configuration said that the later
    /// code was meant.
    replaces: Option<String>,
}

impl Admissions {
    /// Asks the running host, or reads the data folder where none runs. Nothing is known of a host
    /// that does not let this be read; then a note says why.
    pub(super) async fn read(
        loaded: &Loaded,
        components: Vec<String>,
    ) -> Result<(Self, Option<String>), Failure> {
        if let Some(served) = served(loaded).await {
            return Ok((Self::of_running(&served), None));
        }
        let dir = loaded.data_dir();
        let read = move || admissions_at_rest(&dir, &components);
        match tokio::task::spawn_blocking(read).await? {
            Ok(last) => Ok((Self::of_stopped(&last), None)),
            Err(OpenError::Locked { .. }) => Ok((Self::default(), None)),
            Err(error) => {
                let note = format!("note: it is not known which code was admitted before: {error}");
                Ok((Self::default(), Some(note)))
            }
        }
    }

    /// Takes what a running host says of the components that it serves.
    pub(super) fn of_running(served: &Value) -> Self {
        let last = list(served, "/components").iter().map(|it| Admission {
            component: text(it, "/name").to_owned(),
            code: text(it, "/digest").to_owned(),
            replaces: it
                .get("replaces")
                .and_then(Value::as_str)
                .map(str::to_owned),
        });
        Self {
            is_running: true,
            last: last.collect(),
        }
    }

    /// Takes what is on record of a host that is stopped.
    pub(super) fn of_stopped(admitted: &[ComponentAdmitted]) -> Self {
        let last = admitted.iter().map(|it| Admission {
            component: it.component.clone(),
            code: it.code.reference(),
            replaces: it.replaces.map(|code| code.reference()),
        });
        Self {
            is_running: false,
            last: last.collect(),
        }
    }
}

/// The components that a running host serves; none while there is no such host.
async fn served(loaded: &Loaded) -> Option<Value> {
    Client::new(loaded).ok()?.get("/api/components").await.ok()
}

/// The pinning of a component: whether its code is pinned, and which other code has or had its
/// grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pin {
    pub(super) is_pinned: bool,
    other: Option<OtherCode>,
}

/// Other code than is there now, under the name of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OtherCode {
    /// A running host serves it.
    Served(String),
    /// A host that is stopped served it last.
    ServedLast(String),
    /// The code that is there now was admitted in its place, and nobody has pinned that since.
    Before(String),
}

impl Pin {
    pub(super) fn of(entry: &Entry, admissions: &Admissions) -> Self {
        let own = entry.component.digest().reference();
        Self::among(&entry.name, &own, entry.is_pinned, admissions)
    }

    pub(super) fn among(name: &str, own: &str, is_pinned: bool, admissions: &Admissions) -> Self {
        let mut last = admissions.last.iter();
        let other = last.find(|it| it.component == name).and_then(|last| {
            if last.code != own {
                let code = last.code.clone();
                return Some(if admissions.is_running {
                    OtherCode::Served(code)
                } else {
                    OtherCode::ServedLast(code)
                });
            }
            // A host of another version may describe the same code otherwise.
            let before = last.replaces.clone().filter(|before| before != own);
            before.filter(|_| !is_pinned).map(OtherCode::Before)
        });
        Self { is_pinned, other }
    }

    /// Returns the other code.
    pub(super) fn replaces(&self) -> Option<&str> {
        self.other.as_ref().map(|other| match other {
            OtherCode::Served(code) | OtherCode::ServedLast(code) | OtherCode::Before(code) => {
                code.as_str()
            }
        })
    }

    /// Returns the lines for people. `taken_by` says what gives the grant to the code that is there
    /// now, while a host runs.
    pub(super) fn lines(&self, digest: &str, is_toml: bool, taken_by: &str) -> Vec<String> {
        let line = pin_line(digest, is_toml);
        let changed = self.other.as_ref().map(|other| match other {
            OtherCode::Served(code) => format!(
                "  changed  the running host gives this grant to {code}; {taken_by} gives it to \
                     the code that is there now"
            ),
            OtherCode::ServedLast(code) => format!(
                "  changed  the last start gave this grant to {code}; the next one gives it to \
                     the code that is there now"
            ),
            OtherCode::Before(code) => format!(
                "  changed  this grant was given to {code} before; the code that is there now \
                     was admitted in its place"
            ),
        });
        let unpinned = (!self.is_pinned).then(|| {
            format!("  unpinned whatever is in its file gets the grant; pin it with {line}")
        });
        changed.into_iter().chain(unpinned).collect()
    }
}
