//! A tool: counts the words of a text.

use agent_host_sdk::{CallContext, Json, Tool, ToolError, Tools, export_tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool's name, as models see it.
const NAME: &str = "{{snake}}";

/// The component. It may offer any number of tools.
#[derive(Debug)]
pub struct Plugin;

/// The arguments of the tool. The model sees these comments.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// The text.
    text: String,
}

/// The result of the tool. The host checks every result against it.
#[derive(Debug, Serialize, JsonSchema)]
struct Counted {
    words: usize,
}

impl Tools for Plugin {
    fn tools(&self) -> Vec<Tool> {
        // It changes nothing, so the host may run it again after a crash.
        vec![Tool::new(NAME, "Counts the words of a text.", count).read_only()]
    }
}

fn count(_: &CallContext, Arguments { text }: Arguments) -> Result<Json<Counted>, ToolError> {
    let words = text.split_whitespace().count();
    if words == 0 {
        return Err(ToolError::invalid("text", "must have a word in it"));
    }
    Ok(Json(Counted { words }))
}

export_tools!(Plugin);

#[cfg(test)]
mod tests {
    use super::{NAME, Plugin};
    use agent_host_sdk::{ToolError, harness::Bench};
    use serde_json::json;

    #[test]
    fn words_are_counted() {
        let bench = Bench::new(Plugin);
        let counted = bench.text(NAME, json!({ "text": "two  words\n" }));
        assert_eq!(counted.unwrap(), r#"{"words":2}"#);
    }

    #[test]
    fn a_text_without_words_is_refused_with_the_field_and_the_fix() {
        let refused = Bench::new(Plugin).text(NAME, json!({ "text": " " }));
        let reported = "`text` must have a word in it".to_owned();
        assert_eq!(refused, Err(ToolError::InvalidArguments(reported)));
    }
}
