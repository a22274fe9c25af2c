//! `status`, `clock` and `reload`: a running host in numbers, its time, and its configuration read
//! again.

use crate::answer::{Answer, Row, details, lines, list, text};
use crate::cli::Clock;
use crate::client::Client;
use crate::failure::Failure;
use serde_json::{Value, json};

/// The lines on a host.
const DETAILS: [(&str, &str); 10] = [
    ("version", "{/version}"),
    ("up", "{/uptime_s:duration}"),
    ("state", "{/readiness:words}"),
    (
        "sessions",
        "{/sessions/open} open, {/sessions/running} with a turn, {/sessions/quarantined} in quarantine",
    ),
    (
        "inputs",
        "{/inputs/waiting} waiting, {/inputs/dead} dead letters",
    ),
    (
        "triggers",
        "{/triggers/defined} defined, {/triggers/given_up} given up, {/triggers/resting} held up, \
         {/triggers/trigger_events} trigger events waiting",
    ),
    (
        "connectors",
        "{/connectors/configured} configured, {/connectors/in_trouble} in trouble; \
         {/connectors/waiting} messages waiting, {/connectors/unknown} unknown, \
         {/connectors/dead} dead",
    ),
    ("errors", "{/store/failures} failed transactions"),
    (
        "log",
        "{/store/events} events, {/store/bytes:size}, and {/store/write_ahead_log_bytes:size} not yet moved there",
    ),
    ("not moved", "{/store/write_ahead_log_failing}"),
];

/// The lines on jumps of the wall clock.
const CLOCK: [(&str, &str); 3] = [
    (
        "/jump",
        "the wall clock jumped ahead by {/ms:seconds} s; the host follows in {/left_ms:seconds} s, \
         or when it is confirmed",
    ),
    (
        "/gap",
        "{/ms:seconds} s before the start may not have passed; they count in {/left_ms:seconds} s, \
         or when it is confirmed",
    ),
    (
        "/credentials",
        "credentials end by {}: the wall clock was confirmed while it was behind",
    ),
];

/// The lines on a configuration that was read again, behind the first.
const RELOADED: [(&str, &str); 6] = [
    ("/differences", "{/change:<10}  {/key}"),
    ("", "[[and {/left_out} more]]"),
    (
        "/definitions_left_out",
        "[[left out    definitions of users that fit no template any more: {}]]",
    ),
    ("/folders_opened", "opened anew  {}"),
    ("/left_behind", "warning     {}"),
    ("/needs_restart", "after a restart only: {}"),
];

/// Runs the command.
pub(super) async fn run(client: &Client) -> Result<Answer, Failure> {
    Ok(Answer::describing(
        client.get("/api/status").await?,
        status_lines,
    ))
}

fn status_lines(status: &Value) -> Vec<String> {
    let mut lines = details(status, &DETAILS);
    let outages = list(status, "/outages").iter();
    lines.extend(outages.map(|it| format!("{:<12}{}", "down", outage_text(it))));
    lines
}

/// Returns what is down, since when and why.
pub(super) fn outage_text(outage: &Value) -> String {
    let template = match text(outage, "/reason") {
        "" => "{/kind} {/name}: no component can serve it",
        _ => "{/kind} {/name} since {/since}: {/reason}",
    };
    Row::of(outage, &[template], &[]).line()
}

/// Runs the command.
pub(super) async fn clock(client: &Client, what: &Clock) -> Result<Answer, Failure> {
    let clock = match what {
        Clock::Show => client.get("/api/clock").await?,
        Clock::Confirm => client.post("/api/clock/confirm", &json!({})).await?,
    };
    let mut reported = details(&clock, &[("host", "{/now}"), ("wall clock", "{/wall}")]);
    reported.extend(lines(&clock, &CLOCK));
    Ok(Answer::new(clock, reported))
}

/// Runs the command.
pub(super) async fn reload(client: &Client) -> Result<Answer, Failure> {
    let reloaded = client.post("/api/config/reload", &json!({})).await?;
    let is_unchanged = text(&reloaded, "/configuration") == text(&reloaded, "/replaces");
    let first = match is_unchanged {
        true => ("", "unchanged   {/configuration}"),
        false => ("", "in force    {/configuration}"),
    };
    let mut reported = lines(&reloaded, &[first]);
    reported.extend(lines(&reloaded, &RELOADED));
    Ok(Answer::new(reloaded, reported))
}

#[cfg(test)]
mod tests {
    use super::status_lines;
    use serde_json::json;

    #[test]
    fn the_state_of_a_host_is_told_line_by_line() {
        let mut status = json!({
            "version": "0.1.0", "uptime_s": 75, "readiness": "disk_full",
            "sessions": { "open": 3, "running": 1, "quarantined": 0 },
            "inputs": { "waiting": 2, "dead": 1 },
            "triggers": { "defined": 4, "given_up": 1, "resting": 0, "trigger_events": 2 },
            "outages": [
                { "kind": "provider", "name": "openai", "since": "2026-11-28T09:00:00.000Z",
                  "reason": "model-unavailable: no connection" },
                { "kind": "connector", "name": "slack" },
            ],
            "connectors": {
                "configured": 2, "in_trouble": 1, "waiting": 3, "unknown": 0, "dead": 1,
            },
            "store": { "events": 40, "bytes": 4_096, "write_ahead_log_bytes": 0, "failures": 5 },
        });
        let mut reported = vec![
            "version     0.1.0",
            "up          1 min 15 s",
            "state       disk full",
            "sessions    3 open, 1 with a turn, 0 in quarantine",
            "inputs      2 waiting, 1 dead letters",
            "triggers    4 defined, 1 given up, 0 held up, 2 trigger events waiting",
            "connectors  2 configured, 1 in trouble; 3 messages waiting, 0 unknown, 1 dead",
            "errors      5 failed transactions",
            "log         40 events, 4.0 KiB, and 0 B not yet moved there",
            "down        provider openai since 2026-11-28T09:00:00.000Z: model-unavailable: no connection",
            "down        connector slack: no component can serve it",
        ];
        assert_eq!(status_lines(&status), reported);
        status["store"]["write_ahead_log_failing"] = json!("database is locked");
        reported.insert(9, "not moved   database is locked");
        assert_eq!(status_lines(&status), reported);
    }
}
