//! An agent that reads all there is to read and says what it saw.

use plugin::agent::{Description, Guest, News, StepResult, View, named, reply};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        named("reader")
    }

    fn step(turn: &View, _news: Vec<News>) -> StepResult {
        println!("reading for {}", turn.path());
        let last = turn
            .head()
            .and_then(|head| turn.message(head))
            .map(|message| message.parts.len());
        let tools: Vec<String> = turn
            .tool_names()
            .iter()
            .filter_map(|name| turn.tool(name))
            .map(|tool| tool.arguments)
            .collect();
        let peers: Vec<String> = turn.peers().into_iter().map(|peer| peer.id).collect();
        let memo = turn.memo().map(|memo| memo.bytes);
        let blob = turn.read_blob(&format!("sha256:{}", "0".repeat(64)), 1, 2);
        reply(format!(
            "{} {last:?} {tools:?} {peers:?} {memo:?} {blob:?}",
            turn.settings()
        ))
    }
}

plugin::agent::export!(Program);
