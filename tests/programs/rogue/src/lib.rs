//! An agent that does the harm that the user's message names. `attacks.rs` has the list.

#[macro_use]
mod attacks;
mod authority;

use plugin::agent::{
    Decision, Description, Effect, Guest, Memo, News, Operation, Part, StepResult, Until, View,
    Wait, Work, named, reply,
};

struct Program;

impl Guest for Program {
    fn describe() -> Description {
        Description {
            memo_formats: vec![1],
            ..named("rogue")
        }
    }

    fn step(turn: &View, news: Vec<News>) -> StepResult {
        // The first message names the attack; what has settled since is reported.
        let memo = turn
            .memo()
            .and_then(|memo| String::from_utf8(memo.bytes).ok());
        let said = news.iter().find_map(|one| match one {
            News::Said(ids) => turn
                .message(*ids.first()?)
                .and_then(|message| text(&message.parts)),
            News::Opened | News::Settled(_) => None,
        });
        let name = memo.or(said).unwrap_or_default();
        attack(&name, turn, &news).unwrap_or_else(|| reply("nothing but words"))
    }
}

plugin::agent::export!(Program);

macro_rules! dispatch {
    ($($family:ident { $($attack:ident)* })*) => {
        fn attack(name: &str, turn: &View, news: &[News]) -> Option<StepResult> {
            Some(match name {
                $($(stringify!($attack) => $family::$attack(turn, news),)*)*
                _ => return None,
            })
        }
    };
}
foreach_agent_attack!(dispatch);

fn text(parts: &[Part]) -> Option<String> {
    parts.iter().find_map(|part| {
        if let Part::Text(text) = part {
            Some(text.clone())
        } else {
            None
        }
    })
}

/// A step that starts work, does something lasting, and keeps the attack's name for the next step.
fn going_on(attack: &str, effects: Vec<Effect>, start: Vec<(String, Work)>) -> StepResult {
    let start = start
        .into_iter()
        .map(|(key, work)| Operation { key, work })
        .collect();
    let wait = Wait {
        start,
        cancel: Vec::new(),
        until: Until::All,
        hear: false,
    };
    StepResult {
        decision: Decision::Wait(wait),
        effects,
        memo: Some(Memo {
            format: 1,
            bytes: attack.as_bytes().to_vec(),
        }),
    }
}
