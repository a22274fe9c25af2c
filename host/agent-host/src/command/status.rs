//! `status`, `clock` and `reload`: a running host in numbers, its time, and its configuration read
//! again.

use crate::answer::{Answer, details, list, number, text};
use crate::cli::Clock;
use crate::client::Client;
use crate::failure::Failure;
use serde_json::{Value, json};

/// Seconds of a minute, an hour and a day.
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// The lines on a host. Under `/reported` are those values that people get in other units.
const DETAILS: [(&str, &str); 10] = [
    ("version", "{/version}"),
    ("up", "{/reported/up}"),
    ("state", "{/reported/state}"),
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
        "{/store/events} events, {/reported/bytes}, and {/reported/log} not yet moved there",
    ),
    ("not moved", "{/store/write_ahead_log_failing}"),
];

/// Runs the command.
pub(super) async fn run(client: &Client) -> Result<Answer, Failure> {
    let status = client.get("/api/status").await?;
    let lines = lines(&status);
    Ok(Answer::new(status, lines))
}

fn lines(status: &Value) -> Vec<String> {
    let mut shown = status.clone();
    if let Some(fields) = shown.as_object_mut() {
        let reported = json!({
            "up": duration(number(status, "/uptime_s")),
            "state": text(status, "/readiness").replace('_', " "),
            "bytes": size(number(status, "/store/bytes")),
            "log": size(number(status, "/store/write_ahead_log_bytes")),
        });
        fields.insert("reported".to_owned(), reported);
    }
    let mut lines = details(&shown, &DETAILS);
    let outages = list(status, "/outages").iter();
    lines.extend(outages.map(|it| format!("{:<12}{}", "down", outage_text(it))));
    lines
}

/// Returns what is down, since when and why.
pub(super) fn outage_text(outage: &Value) -> String {
    let kind = text(outage, "/kind");
    let name = text(outage, "/name");
    match text(outage, "/reason") {
        "" => format!("{kind} {name}: no component can serve it"),
        reason => format!("{kind} {name} since {}: {reason}", text(outage, "/since")),
    }
}

/// A duration in its two largest units.
fn duration(seconds: u64) -> String {
    let days = seconds / DAY_S;
    let hours = seconds % DAY_S / HOUR_S;
    let minutes = seconds % HOUR_S / MINUTE_S;
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % MINUTE_S),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// A number of bytes in the largest unit of which there is one.
pub(super) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(power, _)| bytes >> power > 0);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(power, name)| {
            // Rounded down, so that what is free is never said to be more.
            let tenths = u128::from(bytes) * 10 / (1 << power);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        },
    )
}

/// Runs the command.
pub(super) async fn clock(client: &Client, what: &Clock) -> Result<Answer, Failure> {
    let clock = match what {
        Clock::Show => client.get("/api/clock").await?,
        Clock::Confirm => client.post("/api/clock/confirm", &json!({})).await?,
    };
    let lines = clock_lines(&clock);
    Ok(Answer::new(clock, lines))
}

fn clock_lines(clock: &Value) -> Vec<String> {
    let mut lines = details(clock, &[("host", "{/now}"), ("wall clock", "{/wall}")]);
    if clock.get("jump").is_some() {
        lines.push(format!(
            "the wall clock jumped ahead by {} s; the host follows in {} s, or when it is \
             confirmed",
            seconds(clock, "/jump/ms"),
            seconds(clock, "/jump/left_ms")
        ));
    }
    if clock.get("gap").is_some() {
        lines.push(format!(
            "{} s before the start may not have passed; they count in {} s, or when it is \
             confirmed",
            seconds(clock, "/gap/ms"),
            seconds(clock, "/gap/left_ms")
        ));
    }
    if clock.get("credentials").is_some() {
        lines.push(format!(
            "credentials end by {}: the wall clock was confirmed while it was behind",
            text(clock, "/credentials")
        ));
    }
    lines
}

/// Milliseconds as seconds.
fn seconds(document: &Value, pointer: &str) -> u64 {
    number(document, pointer).div_ceil(1_000)
}

/// Runs the command.
pub(super) async fn reload(client: &Client) -> Result<Answer, Failure> {
    let reloaded = client.post("/api/config/reload", &json!({})).await?;
    let lines = reload_lines(&reloaded);
    Ok(Answer::new(reloaded, lines))
}

fn reload_lines(reloaded: &Value) -> Vec<String> {
    let line = |what: &str, reported: &str| format!("{what:<10}  {reported}");
    let configuration = text(reloaded, "/configuration");
    let mut lines = vec![match configuration == text(reloaded, "/replaces") {
        true => line("unchanged", configuration),
        false => line("in force", configuration),
    }];
    let differences = list(reloaded, "/differences").iter();
    lines.extend(differences.map(|it| line(text(it, "/change"), text(it, "/key"))));
    let left_out = number(reloaded, "/left_out");
    lines.extend((left_out > 0).then(|| format!("and {left_out} more")));
    let definitions = number(reloaded, "/definitions_left_out");
    lines.extend((definitions > 0).then(|| {
        let what = format!("definitions of users that fit no template any more: {definitions}");
        line("left out", &what)
    }));
    let reported = |pointer| list(reloaded, pointer).iter().filter_map(Value::as_str);
    lines.extend(reported("/folders_opened").map(|it| line("opened anew", it)));
    lines.extend(reported("/left_behind").map(|it| line("warning", it)));
    lines.extend(reported("/needs_restart").map(|it| format!("after a restart only: {it}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::{duration, lines, size};
    use serde_json::json;

    #[test]
    fn durations_and_sizes_are_told_in_units_of_people() {
        for (seconds, reported) in [
            (0, "0 s"),
            (59, "59 s"),
            (61, "1 min 1 s"),
            (3_600, "1 h 0 min"),
            (90_061, "1 d 1 h"),
        ] {
            assert_eq!(duration(seconds), reported);
        }
        for (bytes, reported) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(size(bytes), reported);
        }
    }

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
        assert_eq!(lines(&status), reported);
        status["store"]["write_ahead_log_failing"] = json!("database is locked");
        reported.insert(9, "not moved   database is locked");
        assert_eq!(lines(&status), reported);
    }
}
