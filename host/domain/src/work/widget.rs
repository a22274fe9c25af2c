//! Widgets: the props of a client action, checked before they are shown, and the valid answers to
//! it.
//!
//! A client may have its own widgets, of which only the name is known here.

pub mod document;
#[cfg(test)]
mod tests;
pub mod upload;

use crate::access::tool::ClientAction;
use serde_json::Value;

/// Checks the content of a client action. Returns the JSON Schema of its answer, for an action
/// without its own schema. None for a client's own widget.
///
/// # Errors
/// The first thing at fault and its fix, such as `props.options: 2 to 100 texts are needed, there
/// is 1`.
pub fn check(action: &ClientAction) -> Result<Option<Value>, String> {
    shapes::widget::check(&action.widget, &action.props)
}

/// Returns the fault of an answer that fits its schema and contradicts itself. That is a choice
/// whose name and index differ.
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
