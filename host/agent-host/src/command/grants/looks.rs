//! Looks at lists and grants, a line each.

use domain::authority::{Look, Says};
use domain::ruling::Rule;

/// Returns the line for one look: the list, its verdict, and the pattern that decides.
pub(super) fn look_line(look: &Look) -> String {
    let list = if look.rule == Rule::NotGranted {
        "grant"
    } else {
        look.rule.as_str()
    };
    let by = |pattern: &Option<String>| {
        pattern
            .as_ref()
            .map(|pattern| format!(" by `{pattern}`"))
            .unwrap_or_default()
    };
    let says = match &look.says {
        Says::Nothing => "-".to_owned(),
        Says::Passes { pattern } => format!("passes{}", by(pattern)),
        Says::Stops { pattern } => format!("stops it{}", by(pattern)),
    };
    let with = look
        .with
        .as_ref()
        .map(|with| format!(" (asked for with `{with}`)"))
        .unwrap_or_default();
    format!("  {:<24}{list:<22}{says}{with}", look.name)
}
