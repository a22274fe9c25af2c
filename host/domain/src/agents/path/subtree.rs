//! Subtrees: patterns for the paths of a rule.

use super::{AgentPath, Folder, PATH_BYTES_MAX, PathError};
use crate::access::user::UserId;
use crate::values::shown::escaped;
use crate::values::text::serde_as_text;
use std::fmt;
use std::str::FromStr;

/// The end of a pattern that covers a path and everything below it.
const AND_BELOW: &str = "/**";
/// Bytes of a pattern.
const SUBTREE_BYTES_MAX: usize = PATH_BYTES_MAX + AND_BELOW.len();

/// A pattern for paths. It serializes as its text, in one of these forms:
///
/// - `/alice/agent/x`: that agent alone;
/// - `/alice/agent/x/**`: it, and all that is below it;
/// - `/alice/agent/**`, and the same with `cron`, `task`, `subuser` and `app`: all of these of a
///   user's, with what is below them;
/// - `/alice/**`, `/system/**`: everything of a user's, everything of the host's own;
/// - `/**`: everything.
///
/// Stars have no other use. A text that resembles another wildcard is refused rather than read
/// literally: a deny that matches nothing protects nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subtree {
    /// The pattern without its stars; empty for everything.
    base: String,
    reach: Reach,
}

/// The reach of a pattern from its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reach {
    /// Exactly this path.
    Alone,
    /// It and all below it.
    AndBelow,
}

/// The reason why a text is no pattern for paths, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubtreeError {
    /// It is long.
    #[error("the pattern has {bytes} bytes; {SUBTREE_BYTES_MAX} is the most")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It has a `*` outside the end `/**`.
    #[error(
        "`{0}` has a `*` in it that means nothing there; `/**` at the end stands for a path \
             and all that is below it"
    )]
    Star(String),
    /// It names a place of agents, but no agent.
    #[error("`{0}` names no agent; write `{0}/**` for all that is below it")]
    NoAgent(String),
    /// The part before the stars, or the whole pattern, is no path.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Subtree {
    /// Returns the pattern for exactly that agent.
    #[must_use]
    pub fn alone(path: &AgentPath) -> Self {
        Self {
            base: path.as_str().to_owned(),
            reach: Reach::Alone,
        }
    }

    /// Returns whether the pattern covers the path.
    #[must_use]
    pub fn covers(&self, path: &AgentPath) -> bool {
        self.covers_text(path.as_str())
    }

    /// Returns whether the pattern covers the path or one above it.
    #[must_use]
    pub fn is_over(&self, path: &AgentPath) -> bool {
        self.is_over_text(path.as_str())
    }

    /// The same for a path as text.
    pub(super) fn covers_text(&self, path: &str) -> bool {
        match self.reach {
            Reach::Alone => self.base == path,
            Reach::AndBelow => self.is_over_text(path),
        }
    }

    /// See [`Self::covers_text`].
    pub(super) fn is_over_text(&self, path: &str) -> bool {
        path.strip_prefix(&self.base)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Returns whether agents can be below a text that is no agent's path. Such texts denote
/// everything, a user, the host's own agents, or a user's folders.
fn is_place(base: &str) -> bool {
    if matches!(base, "" | "/system") {
        return true;
    }
    let Some(inside) = base.strip_prefix('/') else {
        return false;
    };
    let (user, folder) = inside
        .split_once('/')
        .map_or((inside, None), |(user, folder)| (user, Some(folder)));
    user.parse::<UserId>().is_ok() && folder.is_none_or(|word| Folder::from_word(word).is_some())
}

impl FromStr for Subtree {
    type Err = SubtreeError;

    fn from_str(text: &str) -> Result<Self, SubtreeError> {
        if text.len() > SUBTREE_BYTES_MAX {
            return Err(SubtreeError::TooLong { bytes: text.len() });
        }
        let (base, reach) = text
            .strip_suffix(AND_BELOW)
            .map_or((text, Reach::Alone), |base| (base, Reach::AndBelow));
        if base.contains('*') {
            return Err(SubtreeError::Star(escaped(text)));
        }
        match (is_place(base), reach) {
            (true, Reach::AndBelow) => {}
            // Without stars an empty text is no pattern; for an invalid path, the path's own error
            // is reported. A connector may be named `app`, and its agent's path then equals the
            // place of a user's apps.
            (true, Reach::Alone) if !base.is_empty() && base.parse::<AgentPath>().is_err() => {
                return Err(SubtreeError::NoAgent(base.to_owned()));
            }
            (true | false, _) => {
                base.parse::<AgentPath>()?;
            }
        }
        Ok(Self {
            base: base.to_owned(),
            reach,
        })
    }
}

impl fmt::Display for Subtree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stars = match self.reach {
            Reach::Alone => "",
            Reach::AndBelow => AND_BELOW,
        };
        write!(f, "{}{stars}", self.base)
    }
}

serde_as_text!(Subtree::from_str);

impl schemars::JsonSchema for Subtree {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Subtree".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A pattern for paths of agents: `/alice/agent/x` for one, \
                            `/alice/agent/x/**` for it and all below it, \
                            `/alice/**` for all of a user's, `/system/**` for the host's own, \
                            `/**` for everything.",
            "type": "string",
            "pattern": "^/",
            "maxLength": SUBTREE_BYTES_MAX,
        })
    }
}
