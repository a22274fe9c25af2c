//! `trigger list`, `trigger show`, `trigger run`, `trigger pause`, `trigger resume`, `trigger
//! history` and `trigger remove`.

use crate::answer::{Answer, OLDER, Row, details, fill, lines, list, number, shown, table, text};
use crate::cli::Trigger;
use crate::client::{Client, code_of, parameters, segment};
use crate::config::{Config, Loaded, odd_targets};
use crate::failure::Failure;
use domain::error_code::ErrorCode;
use domain::trigger::{TriggerSpec, TriggerTarget};
use serde_json::{Value, json};

/// The kind of a pause that has no end, since no time is to come.
const DONE: &str = "done";
/// The outcome of a message that nobody got, and what is said of a trigger event that has only
/// such.
const REFUSED: &str = "refused";

/// The details of a trigger. Under `/reported` is what people get in other words.
const DETAILS: [(&str, &str); 16] = [
    ("trigger", "{/name}"),
    ("kind", "{/kind}"),
    ("state", "{/reported/state}"),
    ("paused by", "{/reported/paused_by}"),
    ("user", "{/pause/user_id}"),
    ("error", "{/pause/error}"),
    ("origin", "{/origin}"),
    ("made by", "{/made_by_agent_id}"),
    ("for", "{/user_id}"),
    ("next due", "{/next_due_at}"),
    ("last fired", "{/last_fired_at}"),
    ("failures", "{/failures}"),
    ("rests until", "{/resting_until_at}"),
    ("waiting", "{/waiting}"),
    ("defined", "{/defined_at}"),
    ("heard by", "{/reported/subscriber}"),
];

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Trigger) -> Result<Answer, Failure> {
    let client = Client::new(loaded)?;
    act(&client, &loaded.config, what).await.map_err(advised)
}

/// Adds what to do about a refusal, as commands of this program.
fn advised(failure: Failure) -> Failure {
    let advice = match code_of(&failure) {
        Some(ErrorCode::TriggerNotFound) => "`trigger list` shows those that there are",
        Some(ErrorCode::TriggerConfigured) => {
            "take it out of the configuration; until then, `trigger pause` has it stand still"
        }
        _ => return failure,
    };
    failure.advise(advice)
}

async fn act(client: &Client, config: &Config, what: Trigger) -> Result<Answer, Failure> {
    let at = |name: &str| format!("/api/triggers/{}", segment(name));
    Ok(match what {
        Trigger::List { user, kind } => {
            let filter = parameters([("user", user), ("kind", kind)]);
            let path = format!("/api/triggers?limit=500{filter}");
            let mut triggers = client.get_all(&path, "/triggers").await?;
            triggers.iter_mut().for_each(|it| warn(config, it));
            let rows = table(triggers.iter().map(row));
            let lines = rows.into_iter().zip(&triggers);
            let lines = lines.flat_map(|(row, it)| std::iter::once(row).chain(warnings(it)));
            let lines: Vec<String> = lines.collect();
            let nothing = triggers.is_empty().then_some("there are no such triggers");
            Answer::new(json!({ "triggers": triggers }), lines).notice(nothing)
        }
        Trigger::Show { name } => {
            let mut trigger = client.get(&at(&name)).await?;
            warn(config, &mut trigger);
            let lines = trigger_lines(&trigger);
            Answer::new(trigger, lines)
        }
        Trigger::Run { name } => {
            let path = format!("{}/run", at(&name));
            let accepted = client.post(&path, &json!({})).await?;
            let trigger_event = text(&accepted, "/trigger_event_id");
            let line = format!("{name} is fired; the trigger event is {trigger_event}");
            Answer::line(accepted, line)
        }
        Trigger::Pause { name } => {
            let path = format!("{}/pause", at(&name));
            Answer::row(client.post(&path, &json!({})).await?, row)
        }
        Trigger::Resume { name } => {
            let path = format!("{}/resume", at(&name));
            Answer::row(client.post(&path, &json!({})).await?, row)
        }
        Trigger::History { name, after, limit } => {
            let after = parameters([("after", after.map(|after| after.to_string()))]);
            let path = format!("{}/history?limit={limit}{after}", at(&name));
            history(client.get(&path).await?)
        }
        Trigger::Remove { name } => {
            let removed = client.delete(&at(&name)).await?;
            Answer::line(removed, format!("{name} is removed"))
        }
    })
}

/// Adds the warnings about a trigger's targets, as a check of the configuration has them.
fn warn(config: &Config, trigger: &mut Value) {
    let spec = trigger.get("spec").cloned().unwrap_or_default();
    let Ok(mut spec) = serde_json::from_value::<TriggerSpec>(spec) else {
        return;
    };
    // One that was made over the API is its maker's.
    let user = text(trigger, "/user_id").parse().ok();
    spec.user = spec.user.or(user);
    let warnings = odd_targets(config, &spec);
    if let Some(fields) = trigger.as_object_mut().filter(|_| !warnings.is_empty()) {
        fields.insert("warnings".to_owned(), json!(warnings));
    }
}

/// Returns the warnings about a trigger, a line each.
fn warnings(trigger: &Value) -> impl Iterator<Item = String> {
    let warnings = list(trigger, "/warnings").iter().filter_map(Value::as_str);
    warnings.map(|it| format!("  warning: {it}"))
}

fn history(page: Value) -> Answer {
    let notices = [
        ("/next_after", OLDER),
        ("/next_due_at", "its next trigger event is due at {}"),
    ];
    let notices = lines(&page, &notices);
    Answer::list(page, "/runs", run_row, "it has not run yet").notice(notices)
}

fn row(trigger: &Value) -> Row {
    let when = [
        "next {/next_due_at}",
        "last {/last_fired_at}",
        "for {/user_id}",
    ];
    Row::of(trigger, &["{/name}", "{/kind}"], &[])
        .cell(state(trigger))
        .cells(trigger, &when)
        .notes(trigger, &["failures {/failures}", "waiting {/waiting}"])
        .note(subscriber(trigger).map(|who| format!("heard by {who}")))
}

/// Returns the state of a trigger for people: one whose last time has come and gone is done, not
/// paused by somebody.
fn state(trigger: &Value) -> &str {
    match text(trigger, "/pause/kind") {
        DONE => DONE,
        _ => text(trigger, "/state"),
    }
}

/// Returns who hears what a trigger says, in words.
fn subscriber(trigger: &Value) -> Option<String> {
    let target = trigger.pointer("/spec/target")?.clone();
    let target: TriggerTarget = serde_json::from_value(target).ok()?;
    let user = text(trigger, "/user_id").parse().ok()?;
    Some(target.subscriber(&user))
}

/// Returns all details of a trigger, a line each, without those that do not apply.
fn trigger_lines(trigger: &Value) -> Vec<String> {
    let state = state(trigger);
    let mut shown_trigger = trigger.clone();
    if let Some(fields) = shown_trigger.as_object_mut() {
        // Nobody paused one that is done.
        let paused_by = trigger.pointer("/pause/kind").filter(|_| state != DONE);
        let reported =
            json!({ "state": state, "paused_by": paused_by, "subscriber": subscriber(trigger) });
        fields.insert("reported".to_owned(), reported);
    }
    let mut lines = details(&shown_trigger, &DETAILS);
    let spec = trigger.get("spec").and_then(Value::as_object);
    let spec = spec.into_iter().flatten();
    lines.extend(spec.map(|(key, value)| format!("  {key} = {}", shown(value))));
    lines.extend(warnings(trigger));
    lines
}

/// The row of a trigger event.
fn run_row(run: &Value) -> Row {
    let trigger_event = run.get("trigger_event").unwrap_or(&Value::Null);
    let messages = list(run, "/messages");
    let is_refused = |message: &Value| text(message, "/outcome") == REFUSED;
    let state = match text(run, "/state") {
        DONE if !messages.is_empty() && messages.iter().all(is_refused) => REFUSED,
        state => state,
    };
    let ends = [
        "failed attempts {/attempts}",
        "{?/stuck}its turn does not come to an end",
        "{/error}",
    ];
    Row::of(run, &["{/accepted_at}"], &[])
        .cell(state)
        .note([trigger_event_text(trigger_event)])
        .notes(run, &["run by {/run_by_user_id}"])
        .note(messages.iter().map(message_text))
        .notes(run, &ends)
}

/// Returns what happened, in words.
fn trigger_event_text(trigger_event: &Value) -> String {
    let template = match text(trigger_event, "/kind") {
        "skipped" => "{/count} passed over from {/due} ({/reason})",
        "webhook" => "webhook {/call_id}",
        "files" => {
            let changes = number(trigger_event, "/changes") + number(trigger_event, "/more");
            return format!(
                "files {} ({changes} changes)",
                text(trigger_event, "/folder")
            );
        }
        "events" => "event {/name} {/event_id}",
        _ => "{/kind} {/due}[[ ({/missed} missed before)]]",
    };
    fill(trigger_event, template)
}

/// Returns what became of a message, in words.
fn message_text(message: &Value) -> String {
    let template = match text(message, "/outcome") {
        "accepted" => "-> session {/session_id}",
        REFUSED => "refused: {/reason}",
        _ => "message {/outcome}",
    };
    fill(message, template)
}

#[cfg(test)]
mod tests {
    use super::{row, run_row, trigger_lines, warn, warnings};
    use crate::config::Config;
    use serde_json::json;

    #[test]
    fn a_trigger_that_nobody_hears_is_shown_with_the_warning_of_the_check() {
        let config = json!({
            "agents": [{ "agentId": "assistant", "displayName": "A" }],
            "connectors": { "chat": { "component": "telegram", "agent": "assistant" } },
        });
        let config: Config = serde_json::from_value(config).unwrap();
        for (path, is_heard) in [("/ada/cron/report", false), ("/ada/chat", true)] {
            let mut trigger = json!({
                "name": "t", "user_id": "ada",
                "spec": { "heartbeat": {}, "target": { "path": path } },
            });
            warn(&config, &mut trigger);
            assert_eq!(warnings(&trigger).next().is_none(), is_heard, "{trigger}");
            let shown = trigger_lines(&trigger);
            let is_warned = shown.iter().any(|it| it.starts_with("  warning: "));
            assert_eq!(is_warned, !is_heard, "{shown:?}");
        }
    }

    #[test]
    fn a_trigger_is_one_line_with_what_matters_now() {
        let trigger = json!({
            "name": "morning", "kind": "schedule", "state": "resting", "failures": 5,
            "next_due_at": "2026-12-15T08:00:00.000Z", "user_id": "ada", "waiting": 0,
            "last_fired_at": null,
        });
        assert_eq!(
            row(&trigger).line(),
            "morning  schedule  resting  next 2026-12-15T08:00:00.000Z  last -  for ada  failures 5"
        );
    }

    #[test]
    fn a_schedule_without_a_time_to_come_is_done_and_not_paused() {
        let trigger = json!({
            "name": "once", "kind": "schedule", "state": "paused", "pause": { "kind": "done" },
            "user_id": "ada",
        });
        let expected = "once  schedule  done  next -  last -  for ada";
        assert_eq!(row(&trigger).line(), expected);
        let shown = trigger_lines(&trigger);
        assert!(shown.contains(&"state        done".to_owned()), "{shown:?}");
        assert!(
            !shown.iter().any(|line| line.contains("paused")),
            "{shown:?}"
        );
    }

    #[test]
    fn a_trigger_is_shown_with_its_definition() {
        let trigger = json!({
            "name": "morning", "state": "paused", "pause": { "kind": "user", "user_id": "ada" },
            "next_due_at": null, "spec": { "message": "Hello.", "schedule": { "every": "1h" } },
        });
        assert_eq!(
            trigger_lines(&trigger),
            [
                "trigger      morning",
                "state        paused",
                "paused by    user",
                "user         ada",
                "  message = Hello.",
                "  schedule = {\"every\":\"1h\"}",
            ]
        );
    }

    #[test]
    fn a_trigger_event_says_what_happened_and_what_became_of_it() {
        for (run, expected) in [
            (
                json!({
                    "accepted_at": "T", "state": "done", "attempts": 1,
                    "trigger_event": { "kind": "clock", "due": "D", "missed": 2 },
                    "messages": [{ "outcome": "accepted", "session_id": "s" }],
                }),
                "T  done  clock D (2 missed before)  -> session s  failed attempts 1",
            ),
            (
                json!({
                    "accepted_at": "T", "state": "done",
                    "trigger_event": { "kind": "clock", "due": "D" },
                    "messages": [{ "outcome": "refused", "reason": "r" }],
                }),
                "T  refused  clock D  refused: r",
            ),
            (
                json!({
                    "accepted_at": "T", "state": "skipped",
                    "trigger_event": { "kind": "skipped", "due": "D", "count": 3, "reason": "missed" },
                }),
                "T  skipped  3 passed over from D (missed)",
            ),
            (
                json!({
                    "accepted_at": "T", "state": "rejected", "error": "no",
                    "trigger_event": { "kind": "webhook", "call_id": "d" },
                }),
                "T  rejected  webhook d  no",
            ),
            (
                json!({
                    "accepted_at": "T", "state": "fired", "run_by_user_id": "ada", "stuck": true,
                    "trigger_event": { "kind": "files", "folder": "/in", "changes": 100, "more": 3 },
                    "messages": [{ "outcome": "waiting" }, { "outcome": "refused", "reason": "r" }],
                }),
                "T  fired  files /in (103 changes)  run by ada  message waiting  refused: r  its \
                 turn does not come to an end",
            ),
        ] {
            assert_eq!(run_row(&run).line(), expected);
        }
    }
}
