//! The loop, played through with a scripted model.

use super::CALLS_AT_ONCE_MAX;
use crate::harness::{Conversation, ConversationStatus, Reply, Scene};
use crate::{
    Agent, Calls, Decision, Description, LimitsLeft, ModelCall, ModelRequest, News, Operation,
    Outcome, Part, Role, Settlement, Step, ToolError, Toolset, Turn, Work,
};
use serde_json::{Value, json};

struct Plain;

impl Agent for Plain {
    fn describe(&self) -> Description {
        Description::new("plain", "Plain", "The loop and nothing else.")
    }
}

fn keys(step: &Step) -> Vec<&str> {
    match &step.decision {
        Decision::Wait(wait) => wait
            .start
            .iter()
            .map(|operation| operation.key.as_str())
            .collect(),
        Decision::Reply(_) | Decision::Complete(_) | Decision::Fail(_) => Vec::new(),
    }
}

fn request(step: &Step) -> &ModelRequest {
    match &step.decision {
        Decision::Wait(wait) => match &wait.start[0].work {
            Work::Model(request) => request,
            other => panic!("not a model's call: {other:?}"),
        },
        other => panic!("not waiting: {other:?}"),
    }
}

#[test]
fn words_are_answered_by_the_model_in_two_steps() {
    let mut conversation = Conversation::new(Plain)
        .prompt("Be kind.")
        .model_says("Hello!");
    assert_eq!(conversation.say("Hi").words(), "Hello!");
    assert_eq!(conversation.transcript(), ["user: Hi", "assistant: Hello!"]);
    assert_eq!(conversation.requests()[0].system, ["Be kind."]);
    assert_eq!(keys(&conversation.steps()[0]), ["model-1"]);
    assert_eq!(conversation.steps()[1], Step::done());
}

#[test]
fn an_agent_without_a_prompt_sends_no_empty_block() {
    let mut conversation = Conversation::new(Plain).model_says("Hello!");
    conversation.say("Hi");
    assert!(conversation.requests()[0].system.is_empty());
}

#[test]
fn calls_of_one_reply_start_together_and_the_model_is_asked_again_after_all() {
    let mut conversation = Conversation::new(Plain)
        .tool("add", |arguments: Value| {
            Ok((arguments["a"].as_i64().unwrap() + 1).to_string())
        })
        .tool("fail", |_| {
            Err::<String, _>(ToolError::NotFound("no such thing".to_owned()))
        })
        .model_replies(
            Reply::new()
                .text("Let me see.")
                .call("add", &json!({"a": 1}))
                .call("fail", &json!({})),
        )
        .model_says("Two, and no.");
    assert_eq!(conversation.say("?").words(), "Two, and no.");
    assert_eq!(keys(&conversation.steps()[1]), ["call-2-0", "call-2-1"]);
    assert_eq!(conversation.steps().len(), 4);
    assert_eq!(
        conversation.transcript(),
        [
            "user: ?",
            "assistant: Let me see.",
            "tool: 2",
            "tool: no such thing",
            "assistant: Two, and no."
        ]
    );
}

#[test]
fn a_tool_that_does_not_exist_is_the_models_to_deal_with() {
    let mut conversation = Conversation::new(Plain)
        .model_calls("ghost", &json!({}))
        .model_says("Sorry.");
    assert_eq!(conversation.say("?").words(), "Sorry.");
}

#[test]
fn arguments_that_are_not_json_are_the_models_to_deal_with() {
    let mut conversation = Conversation::new(Plain)
        .tool("add", |_| Ok(String::new()))
        .model_replies(Reply::new().raw_call("add", "{oops"))
        .model_says("Sorry.");
    assert_eq!(conversation.say("?").words(), "Sorry.");
    assert!(conversation.calls().is_empty());
}

#[test]
fn a_model_that_cannot_be_asked_fails_the_turn_with_the_reason() {
    let mut conversation = Conversation::new(Plain).model_replies(Reply::failure(
        "model-unavailable",
        "all providers are down",
    ));
    let reason =
        "the model could not be asked: all providers are down (model-unavailable)".to_owned();
    assert_eq!(conversation.say("Hi"), ConversationStatus::Failed(reason));
}

#[test]
fn more_calls_than_may_run_at_once_run_in_batches() {
    let mut reply = Reply::new();
    for _ in 0..70 {
        reply = reply.call("tick", &json!({}));
    }
    let mut conversation = Conversation::new(Plain)
        .tool("tick", |_| Ok("tock".to_owned()))
        .model_replies(reply)
        .model_says("Done.");
    assert_eq!(conversation.say("Tick 70 times").words(), "Done.");
    assert_eq!(conversation.calls().len(), 70);
    assert_eq!(
        conversation
            .steps()
            .iter()
            .map(|step| keys(step).len())
            .collect::<Vec<_>>(),
        [1, 32, 32, 6, 1, 0]
    );
}

#[test]
fn a_turn_that_runs_out_of_calls_ends_with_an_answer_and_not_a_failure() {
    let left = LimitsLeft {
        steps: 50,
        tool_calls: 2,
        tokens: 1_000,
    };
    let mut conversation = Conversation::in_scene(Plain, Scene::new().left(left))
        .tool("tick", |_| Ok("tock".to_owned()))
        .model_replies(
            Reply::new()
                .call("tick", &json!({}))
                .call("tick", &json!({}))
                .call("tick", &json!({})),
        )
        .model_says("Ticked twice.");
    assert_eq!(conversation.say("Tick").words(), "Ticked twice.");
    assert_eq!(conversation.requests()[0].tools, Toolset::All);
    assert_eq!(conversation.requests()[1].tools, Toolset::None);
    assert!(
        conversation
            .transcript()
            .contains(&"tool: skipped".to_owned())
    );
}

#[test]
fn a_turn_that_runs_out_of_steps_ends_with_an_answer_and_not_a_failure() {
    let left = LimitsLeft {
        steps: 8,
        tool_calls: 100,
        tokens: 1_000,
    };
    let mut conversation = Conversation::in_scene(Plain, Scene::new().left(left))
        .tool("tick", |_| Ok("tock".to_owned()));
    for _ in 0..3 {
        conversation = conversation.model_calls("tick", &json!({}));
    }
    let mut conversation = conversation.model_says("Enough.");
    assert_eq!(conversation.say("Tick for ever").words(), "Enough.");
    assert_eq!(conversation.steps().len(), 8);
}

#[test]
fn words_that_came_meanwhile_are_answered_in_the_same_turn() {
    let scene = Scene::new()
        .said("one")
        .message(Role::Assistant, "1")
        .said("two");
    let step = Plain.step(scene.turn(), &[News::Said(vec![3])]);
    assert_eq!(keys(&step), ["model-3"]);
}

#[test]
fn a_last_call_without_a_result_in_the_news_asks_the_model_again() {
    let scene = Scene::new().said("one").message(Role::Assistant, "1");
    let settlement = Settlement {
        key: "call-2-0".to_owned(),
        outcome: Outcome::Unknown,
    };
    assert_eq!(
        keys(&Plain.step(scene.turn(), &[News::Settled(settlement)])),
        ["model-2"]
    );
}

/// The calls that were left to a turn at first are fewer than its model made. Others came back with
/// the result.
#[test]
fn a_batch_that_the_limits_cut_short_is_followed_by_the_rest() {
    let calls = (0..5).map(|index| {
        Part::Call(ModelCall {
            index,
            name: "tick".to_owned(),
            arguments: "{}".to_owned(),
        })
    });
    let calls: Vec<Part> = calls.collect();
    let scene = |tool_calls| {
        let left = LimitsLeft {
            steps: 50,
            tool_calls,
            tokens: 1_000,
        };
        let said = Scene::new().left(left).said("Tick");
        said.message(Role::Assistant, calls.clone())
    };
    let answered = News::Settled(Settlement {
        key: "model-1".to_owned(),
        outcome: Outcome::Message(2),
    });
    let first = scene(2);
    let first = Plain.step(first.turn(), &[answered]);
    assert_eq!(keys(&first), ["call-2-0-1", "call-2-1-1"]);
    let ended = |key: &str| {
        News::Settled(Settlement {
            key: key.to_owned(),
            outcome: Outcome::Unknown,
        })
    };
    let both = ["call-2-0-1", "call-2-1-1"].map(ended);
    let rest = scene(9);
    let rest = Plain.step(rest.turn(), &both);
    assert_eq!(keys(&rest), ["call-2-2", "call-2-3", "call-2-4"]);
}

struct Racer;

impl Agent for Racer {
    fn describe(&self) -> Description {
        Description::new("racer", "Racer", "Starts an operation of its own.")
    }

    fn on_said(&self, _: Turn<'_>, _: &[u64]) -> Step {
        Step::start([Operation::timer_ms("lap", 10)])
    }
}

#[test]
fn an_agent_that_starts_an_operation_and_says_no_more_fails_with_its_key() {
    let ConversationStatus::Failed(reason) = Conversation::new(Racer).say("Go") else {
        panic!("it ended well")
    };
    assert!(reason.contains("`lap`"), "{reason}");
}

#[test]
fn the_model_is_told_when_it_has_to_come_to_an_end() {
    let scene = Scene::new().said("x").tool_named("tick").left(LimitsLeft {
        steps: 2,
        tool_calls: 9,
        tokens: 9,
    });
    let step = Plain.step(scene.turn(), &[News::Said(vec![1])]);
    assert_eq!(request(&step).also.len(), 1);
    let alone = Scene::new().said("x").left(LimitsLeft {
        steps: 2,
        tool_calls: 9,
        tokens: 9,
    });
    assert!(
        request(&Plain.step(alone.turn(), &[News::Said(vec![1])]))
            .also
            .is_empty()
    );
}

/// Pays only what the user agrees to, and never deletes.
struct Careful;

impl Agent for Careful {
    fn describe(&self) -> Description {
        Description::new("careful", "Careful", "Asks before it pays.")
    }
    fn on_calls(&self, _turn: Turn<'_>, calls: &[ModelCall]) -> Calls {
        calls
            .iter()
            .fold(Calls::run(), |decided, call| match call.name.as_str() {
                "pay" => decided.ask_first(call.index, format!("Really {}?", call.arguments)),
                "delete" => decided.refuse(call.index, "nothing is deleted here"),
                _ => decided,
            })
    }
}

fn careful() -> Conversation<Careful> {
    Conversation::new(Careful)
        .tool("pay", |_| Ok("paid".to_owned()))
        .tool("delete", |_| Ok("deleted".to_owned()))
        .tool("look", |_| Ok("seen".to_owned()))
        .model_replies(
            Reply::new()
                .call("look", &json!({}))
                .call("pay", &json!({"to": "a"}))
                .call("delete", &json!({})),
        )
        .model_says("Done.")
}

fn made(conversation: &Conversation<impl Agent>) -> Vec<&str> {
    conversation
        .calls()
        .iter()
        .map(|(name, _)| name.as_str())
        .collect()
}

#[test]
fn a_call_is_made_after_a_yes_and_a_refused_one_never() {
    let mut conversation = careful();
    let asked = conversation.say("Pay.");
    assert_eq!(
        asked.question().props["prompt"],
        json!("Really {\"to\":\"a\"}?")
    );
    assert_eq!(
        conversation.answer(json!({ "confirmed": true })).words(),
        "Done."
    );
    assert_eq!(made(&conversation), ["look", "pay"]);
    let also = crate::text_of(&conversation.requests()[1].also);
    assert_eq!(
        also,
        "Call 3 of `delete` was not made: nothing is deleted here."
    );
}

#[test]
fn a_call_to_which_the_user_does_not_agree_is_not_made_and_the_model_is_told() {
    let mut conversation = careful();
    conversation.say("Pay.");
    assert_eq!(
        conversation.answer(json!({ "confirmed": false })).words(),
        "Done."
    );
    assert_eq!(made(&conversation), ["look"]);
    let also = crate::text_of(&conversation.requests()[1].also);
    assert!(also.contains("Call 2 of `pay` was not made: the user was asked and did not agree."));
}

/// Starts some of the calls itself, under the keys that the loop gives its last ones.
struct Guard(std::ops::Range<u32>);

impl Agent for Guard {
    fn describe(&self) -> Description {
        Description::new("guard", "Guard", "Leaves the second call out.")
    }
    fn step(&self, turn: Turn<'_>, news: &[News]) -> Step {
        let head = turn.head().and_then(|head| turn.message(head));
        match head.filter(|head| head.calls().count() > 1) {
            Some(head) => Step::start(self.0.clone().map(|index| {
                Operation::call_of_model(format!("call-{}-{index}", head.id), head.id, index)
            })),
            None => crate::tool_loop::step(self, turn, news),
        }
    }
}

#[test]
fn a_call_that_an_agent_left_out_is_never_made() {
    let most = CALLS_AT_ONCE_MAX;
    for (started, calls) in [(0..1, 2), (0..most, most + 1), (most - 1..most, most + 2)] {
        let mut reply = Reply::new();
        for _ in 0..calls {
            reply = reply.call("a", &json!({}));
        }
        let number = started.len();
        let mut conversation = Conversation::new(Guard(started))
            .tool("a", |_| Ok("one".to_owned()))
            .model_replies(reply)
            .model_says("Done.");
        assert_eq!(conversation.say("Both").words(), "Done.");
        assert_eq!(made(&conversation).len(), number, "{calls}");
    }
}
