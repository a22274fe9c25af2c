//! Tools: definitions that follow from types, and calls on the bench.

use crate::harness::{Bench, notes};
use crate::{
    ArtifactItems, CallContext, ClientAction, EffectClass, IntoProgress, Json, Part, Progress,
    Tool, ToolError, Tools,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// For readers of the code.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    /// Drink to brew.
    drink: Drink,
    sugar_lumps: Option<u8>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Drink {
    Tea,
    Coffee,
}

#[derive(Serialize, JsonSchema)]
struct Brewed {
    cups: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

struct Kitchen;

impl Tools for Kitchen {
    fn tools(&self) -> Vec<Tool> {
        vec![
            Tool::new(
                "brew",
                "Brews a drink.",
                |call: &CallContext, order: Order| {
                    call.note("the water is on");
                    match (order.drink, order.sugar_lumps) {
                        (_, Some(9..)) => Err(ToolError::invalid("sugarLumps", "must be below 9")),
                        (Drink::Tea, _) => Ok(Json(Brewed { cups: 2 })),
                        (Drink::Coffee, _) => Ok(Json(Brewed { cups: 1 })),
                    }
                },
            )
            .idempotent()
            .needs("kitchen.use")
            .within_ms(5_000),
            Tool::new(
                "eat_cake",
                "Eats the cake, if the user agrees.",
                |call: &CallContext, _: Nothing| match &call.answer {
                    None => Ok(Progress::Ask {
                        action: ClientAction::confirmation("The whole cake?"),
                        state: vec![1],
                    }),
                    Some(answer) if answer["confirmed"] == true => {
                        "eaten".to_owned().into_progress()
                    }
                    Some(_) => "left alone".to_owned().into_progress(),
                },
            )
            .destructive(),
        ]
    }
}

#[test]
fn a_definition_follows_from_the_types() {
    let brew = Bench::new(Kitchen).definition("brew");
    assert_eq!(brew.arguments["type"], "object");
    assert_eq!(brew.arguments["required"], json!(["drink"]));
    assert_eq!(brew.arguments["additionalProperties"], false);
    assert_eq!(
        brew.arguments["properties"]["drink"]["enum"],
        json!(["tea", "coffee"])
    );
    assert_eq!(
        brew.arguments["properties"]["drink"]["description"],
        "Drink to brew."
    );
    assert!(brew.arguments["properties"].get("sugarLumps").is_some());
    assert_eq!(
        brew.results.unwrap()["properties"]["cups"]["type"],
        "integer"
    );
    assert_eq!(
        (brew.effect, brew.destructive, brew.time_limit_ms),
        (EffectClass::Idempotent, false, Some(5_000))
    );
    assert_eq!(brew.capabilities, ["kitchen.use"]);
}

#[test]
fn a_listing_of_artifacts_is_marked_in_the_schema_of_its_results() {
    let run = |_: &CallContext, _: Nothing| Ok(Json(ArtifactItems::default()));
    let listing = Tool::new("items", "Names all items.", run).read_only();
    let results = listing.definition().results.unwrap();
    assert_eq!(results.get("x-artifact-items"), None);
    let listing = listing.lists_artifacts();
    let results = listing.definition().results.unwrap();
    assert_eq!(results["x-artifact-items"], true);
    let item = &results["properties"]["items"]["items"];
    assert_eq!(item["required"], json!(["type", "id", "name"]));
    let given = listing.call(&CallContext::default(), json!({})).unwrap();
    assert_eq!(
        given,
        Progress::Done(vec![Part::Text(r#"{"items":[]}"#.to_owned())])
    );
}

#[test]
fn a_schema_holds_nothing_that_a_model_has_no_use_for() {
    let schema = Bench::new(Kitchen).definition("brew").arguments.to_string();
    for noise in [
        "$schema",
        "$ref",
        "$defs",
        "\"title\"",
        "readers of the code",
    ] {
        assert!(!schema.contains(noise), "{noise} in {schema}");
    }
}

#[test]
fn a_tool_that_says_nothing_of_its_effect_runs_at_most_once() {
    let cake = Bench::new(Kitchen).definition("eat_cake");
    assert_eq!(
        (cake.effect, cake.destructive, cake.results),
        (EffectClass::NonIdempotent, true, None)
    );
}

#[test]
fn a_typed_result_is_one_text_part_of_json() {
    let done = Bench::new(Kitchen).call("brew", json!({ "drink": "tea" }));
    assert_eq!(
        done,
        Ok(Progress::Done(vec![Part::Text(r#"{"cups":2}"#.to_owned())]))
    );
    assert_eq!(notes(), ["the water is on"]);
}

#[test]
fn arguments_that_do_not_fit_the_type_never_reach_the_tool() {
    let bench = Bench::new(Kitchen);
    for (arguments, named) in [
        (json!({ "drink": "beer" }), "`beer`"),
        (json!({}), "`drink`"),
        (json!({ "drink": "tea", "x": 1 }), "`x`"),
    ] {
        match bench.call("brew", arguments) {
            Err(ToolError::InvalidArguments(message)) => {
                assert!(message.contains(named), "{message}")
            }
            other => panic!("not refused: {other:?}"),
        }
    }
}

#[test]
fn a_tools_own_objection_names_the_field() {
    let refused = Bench::new(Kitchen).text("brew", json!({ "drink": "tea", "sugarLumps": 20 }));
    assert_eq!(
        refused,
        Err(ToolError::InvalidArguments(
            "`sugarLumps` must be below 9".to_owned()
        ))
    );
}

#[test]
fn an_unknown_tool_is_not_found_and_the_known_ones_are_named() {
    let missing = Bench::new(Kitchen).text("bake", Value::Null);
    assert_eq!(
        missing,
        Err(ToolError::NotFound(
            "there is no tool `bake` here, only brew, eat_cake".to_owned()
        ))
    );
}

#[test]
fn a_call_goes_on_with_the_users_answer() {
    let bench = Bench::new(Kitchen);
    let Ok(Progress::Ask { action, state }) = bench.call("eat_cake", json!({})) else {
        panic!("it did not ask")
    };
    assert_eq!(action.widget, "confirmation");
    let done = bench.resume(
        "eat_cake",
        json!({}),
        &state,
        Some(json!({ "confirmed": false })),
    );
    assert_eq!(
        done,
        Ok(Progress::Done(vec![Part::Text("left alone".to_owned())]))
    );
}
