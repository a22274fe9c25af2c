//! Tools that work: many host calls in a row, much computing, computing without end, next to nothing.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};
use std::hint::black_box;

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let stats = ToolDefinition { capabilities: vec!["files.read".into()], ..named("stats") };
        ["sieve", "spin", "idle"].map(named).into_iter().chain([stats]).collect()
    }

    /// The argument is a number.
    fn call(_context: CallContext, name: String, arguments: String) -> Result<Progress, ToolError> {
        let number: usize = arguments.trim().parse().unwrap_or_default();
        match name.as_str() {
            // One call of the host each: the kind of an open file.
            "stats" => match std::fs::File::open("/data/file.txt") {
                Ok(file) => done((0..number).filter(|_| file.metadata().is_ok()).count().to_string()),
                Err(error) => Err(ToolError::Failed(error.to_string())),
            },
            "sieve" => done(primes(number).to_string()),
            "spin" => loop {
                std::hint::spin_loop();
            },
            _ => done(String::new()),
        }
    }
}

plugin::tool::export!(Program);

/// How many primes there are below a number.
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
