//! An agent that calls every function that can be imported, once, and reports the result of each.

use plugin::agent::{Description, Guest, News, Part, StepResult, View, named, reply};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        named("matrix")
    }

    fn step(turn: &View, _news: Vec<News>) -> StepResult {
        probe::leave(
            &turn
                .message(1)
                .map(|message| text(&message.parts))
                .unwrap_or_default(),
        );
        let mut rows = probe::rows("");
        turn.agent_id();
        turn.path();
        turn.session_type();
        turn.now_ms();
        turn.left();
        turn.settings();
        turn.preferences();
        turn.session_state();
        turn.head();
        turn.message(1);
        turn.tool_names();
        turn.tool("echo");
        turn.peers();
        turn.memo();
        let own = [
            "agent-id",
            "path",
            "session-type",
            "now-ms",
            "left",
            "settings",
            "preferences",
            "session-state",
            "head",
            "message",
            "tool-names",
            "tool",
            "peers",
            "memo",
        ];
        for name in own {
            rows.say(
                &format!("agent-host:plugin/turn.[method]view.{name}"),
                "answers",
            );
        }
        rows.say(
            "agent-host:plugin/turn.[method]view.read-blob",
            probe::empty(turn.read_blob("0".repeat(64).as_str(), 0, 1).is_none()),
        );
        reply(rows.0)
    }
}

fn text(parts: &[Part]) -> String {
    match parts {
        [Part::Text(text), ..] => text.clone(),
        _ => String::new(),
    }
}

plugin::agent::export!(Program);
