//! Tools that work: many host calls in a row, much computing, computing without end, next to
//! nothing.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};
use serde_json::{Value, json};
use std::hint::black_box;
use wasip2::cli::environment::get_environment;

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let stats = ToolDefinition {
            capabilities: vec!["files.read".into()],
            ..named("stats")
        };
        let environments = ToolDefinition {
            capabilities: vec!["env.read".into()],
            ..named("environments")
        };
        ["sieve", "json", "spin", "idle"]
            .map(named)
            .into_iter()
            .chain([stats, environments])
            .collect()
    }

    /// The argument is a number.
    fn call(_context: CallContext, name: String, arguments: String) -> Result<Progress, ToolError> {
        let number: usize = arguments.trim().parse().unwrap_or_default();
        match name.as_str() {
            // One call of the host each: the kind of an open file.
            "stats" => match std::fs::File::open("/data/file.txt") {
                Ok(file) => done(
                    (0..number)
                        .filter(|_| file.metadata().is_ok())
                        .count()
                        .to_string(),
                ),
                Err(error) => Err(ToolError::Failed(error.to_string())),
            },
            // One call of the host each, which waits for nothing.
            "environments" => done(
                (0..number)
                    .filter(|_| !get_environment().is_empty())
                    .count()
                    .to_string(),
            ),
            "sieve" => done(primes(number).to_string()),
            "json" => done((0..number).map(reread).sum::<usize>().to_string()),
            "spin" => loop {
                std::hint::spin_loop();
            },
            _ => done(String::new()),
        }
    }
}

plugin::tool::export!(Program);

/// Counts the primes below a number.
fn primes(below: usize) -> usize {
    let mut is_prime = vec![true; black_box(below)];
    for number in 2..below {
        if is_prime[number] {
            let mut multiple = number * number;
            while multiple < below {
                is_prime[multiple] = false;
                multiple += number;
            }
        }
    }
    is_prime.iter().skip(2).filter(|prime| **prime).count()
}

/// Writes a document, reads it and writes it again: how long it is.
fn reread(number: usize) -> usize {
    let rows: Vec<Value> = (0..50)
        .map(|row| {
            json!({
                "id": number + row, "name": format!("row {row}"), "tags": ["a", "b"], "share": 0.25,
            })
        })
        .collect();
    let text = black_box(Value::from(rows).to_string());
    serde_json::from_str::<Value>(&text).map_or(0, |document| document.to_string().len())
}
