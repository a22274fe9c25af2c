//! Widgets: the props of a client action, checked before they are shown, and what fits as an answer
//! to it.
//!
//! A client may have widgets of its own, of which nothing is known here but that they have a name.

pub mod document;
#[cfg(test)]
mod tests;
pub mod upload;

use crate::access::tool::ClientAction;
use serde_json::Value;

/// Checks what a client action shows. Returns the JSON Schema of its answer, for when the action
/// brings none; none for a widget that is the client's own.
///
/// # Errors
/// The first thing at fault and its fix, such as `props.options: 2 to 100 texts are needed, there
/// is 1`.
pub fn check(action: &ClientAction) -> Result<Option<Value>, String> {
    shapes::widget::check(&action.widget, &action.props)
}

/// Returns the fault of an answer that fits its schema and contradicts itself. That is a choice
/// that names another option than it points at.
#[must_use]
pub fn contradiction(action: &ClientAction, answer: &Value) -> Option<String> {
    let options = action.props.get("options")?.as_array()?;
    let option = |index: &Value| options.get(usize::try_from(index.as_u64()?).ok()?);
    match action.widget.as_str() {
        "multiple_choice" => {
            let index = answer.get("index")?;
            let selection = answer.get("selection")?;
            let chosen = option(index)?;
            (chosen != selection).then(|| {
                format!("the option of index {index} is {chosen}, and the selection is {selection}")
            })
        }
        "multi_select" => {
            let indices = answer.get("indices")?.as_array()?;
            let selections = answer.get("selections")?.as_array()?;
            let chosen: Vec<&Value> = indices.iter().filter_map(option).collect();
            let same = chosen.len() == selections.len()
                && chosen.iter().all(|option| selections.contains(option));
            (!same).then(|| "the selections are other options than those of the indices".to_owned())
        }
        _ => None,
    }
}
