//! A tool that sleeps for an hour, in the host's hands; and listings of items that sleep for a
//! while.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

struct Program;

/// Number of the listings.
const LISTINGS: usize = 6;
/// Milliseconds that each of them sleeps.
const NAP_MS: u64 = 600;

/// A tool that lists one item.
fn listing(number: usize) -> ToolDefinition {
    ToolDefinition {
        results: Some(r#"{"type":"object","x-artifact-items":true}"#.to_owned()),
        ..named(&format!("sleepy_{number}"))
    }
}

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let listings = (0..LISTINGS).map(listing);
        std::iter::once(named("sleepy")).chain(listings).collect()
    }

    fn call(_context: CallContext, name: String, arguments: String) -> Result<Progress, ToolError> {
        if name.starts_with("sleepy_") {
            std::thread::sleep(std::time::Duration::from_millis(NAP_MS));
            return done(format!(
                r#"{{"items":[{{"type":"nap","id":"{name}","name":"Nap"}}]}}"#
            ));
        }
        let ms = arguments
            .chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .unwrap_or(3_600_000);
        let before = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(ms));
        done(before.elapsed().as_millis().to_string())
    }
}

plugin::tool::export!(Program);
