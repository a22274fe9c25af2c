//! A tool: counts the lines, words and characters of a text. Models are bad at that.

use agent_host_sdk::{CallContext, Json, Tool, ToolError, Tools, export_tools};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool component.
#[derive(Debug)]
pub struct TextStats;

/// The arguments of the tool. Their JSON Schema follows from the type, the descriptions from the
/// comments.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// The text to count.
    text: String,
}

/// The result of the tool. The host checks every result against the schema of this type.
#[derive(Debug, Serialize, JsonSchema)]
struct Stats {
    lines: usize,
    words: usize,
    characters: usize,
}

impl Tools for TextStats {
    fn tools(&self) -> Vec<Tool> {
        vec![
            Tool::new(
                "text_stats",
                "Counts the lines, words and characters of a text.",
                count,
            )
            .read_only(),
        ]
    }
}

fn count(_: &CallContext, Arguments { text }: Arguments) -> Result<Json<Stats>, ToolError> {
    if text.is_empty() {
        return Err(ToolError::invalid("text", "must not be empty"));
    }
    Ok(Json(Stats {
        lines: text.lines().count(),
        words: text.split_whitespace().count(),
        characters: text.chars().count(),
    }))
}

export_tools!(TextStats);

#[cfg(test)]
mod tests {
    use super::TextStats;
    use agent_host_sdk::{ToolError, harness::Bench};
    use serde_json::json;

    #[test]
    fn a_text_is_counted_and_an_empty_one_refused() {
        let bench = Bench::new(TextStats);
        let counted = bench
            .text("text_stats", json!({ "text": "ein Häuschen\nam See" }))
            .unwrap();
        assert_eq!(counted, r#"{"lines":2,"words":4,"characters":19}"#);
        let refused = bench.text("text_stats", json!({ "text": "" }));
        assert_eq!(
            refused,
            Err(ToolError::InvalidArguments(
                "`text` must not be empty".to_owned()
            ))
        );
        assert_eq!(
            bench.definition("text_stats").arguments["properties"]["text"]["description"],
            "The text to count."
        );
    }
}
