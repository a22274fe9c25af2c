//! The outlook of a configuration: the next events of its triggers, and what its connectors need
//! before they do anything.

use super::document::Config;
use super::finding::{Finding, warning};
use crate::answer;
use domain::connector::{ConnectorSpec, DIRECT, DirectSpec, Groups, Intake, UnknownSender};
use domain::time::Timestamp;
use domain::trigger::{HostEventKind, Interval, TriggerKind, TriggerName, TriggerSpec};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::Serialize;
use serde_json::json;

/// Times that are told of a schedule.
const TIMES: usize = 3;
/// Milliseconds of a minute.
const MINUTE_MS: u64 = 60_000;
/// The form of a time that is told: ISO 8601, with the offset of its zone.
const TIME_FORM: &str = "%Y-%m-%dT%H:%M:%S%:z";

/// The outlook of one trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TriggerOutlook {
    /// Its name.
    pub(crate) trigger: String,
    /// The key of its kind.
    pub(crate) kind: &'static str,
    /// Its component.
    pub(crate) component: String,
    /// The user on whose behalf it speaks.
    pub(crate) user: Option<String>,
    /// The next times of its schedule, in its zone.
    pub(crate) next: Vec<String>,
    /// The trigger events on which it is fired, or the reason why it never is, in words.
    pub(crate) fires: String,
    /// The users who hear what it says, in words; none without a user.
    pub(crate) hears: Option<String>,
    /// The reason why it fires later than its `cron` line says; none if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) later: Option<&'static str>,
}

/// The outlook of one connector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ConnectorOutlook {
    /// Its name.
    pub(crate) connector: String,
    /// Its component.
    pub(crate) component: String,
    /// The agent that talks through it.
    pub(crate) agent: String,
    /// The way of messages into the host.
    pub(crate) intake: &'static str,
    /// Its means, and the work that remains to be done elsewhere, in words.
    pub(crate) needs: Vec<String>,
}

/// The line on a trigger.
const TRIGGER: &str = "  trigger     {/trigger} ({/kind}) fires {/fires}[[: {/next:list}]]\
                       [[; {/later}]][[; heard by {/hears}]]";
/// The lines on a connector.
const CONNECTOR: [(&str, &str); 2] = [
    (
        "",
        "  connector   {/connector} ({/intake}) talks as {/agent}",
    ),
    ("/needs", "              {}"),
];

/// Returns them as lines.
pub(crate) fn lines(triggers: &[TriggerOutlook], connectors: &[ConnectorOutlook]) -> Vec<String> {
    let connectors = connectors.iter();
    let connectors = connectors.flat_map(|it| answer::lines(&json!(it), &CONNECTOR));
    let triggers = answer::lines(&json!(triggers), &[("", TRIGGER)]);
    triggers.into_iter().chain(connectors).collect()
}

/// Returns the outlook of all triggers of a configuration that would be served from now on.
pub(crate) fn triggers(config: &Config, now: Timestamp) -> Vec<TriggerOutlook> {
    let triggers = config.all_triggers();
    triggers
        .iter()
        .map(|(name, spec)| TriggerOutlook {
            trigger: name.to_string(),
            kind: spec.on.key(),
            component: spec.component().to_owned(),
            user: spec.user.as_ref().map(ToString::to_string),
            next: next_times(name, spec, now),
            fires: fires(config, name, spec, now),
            hears: spec.user.as_ref().map(|user| spec.target.subscriber(user)),
            later: later(name, spec, now),
        })
        .collect()
}

/// Finds triggers that never fire although nothing says that they are to stand still.
pub(crate) fn never_due(config: &Config, now: Timestamp) -> Vec<Finding> {
    let triggers = config.triggers.iter().filter(|(_, spec)| spec.enabled);
    triggers
        .filter_map(|(name, spec)| {
            let (field, fix) = match &spec.on {
                TriggerKind::Schedule(_) => ("schedule", "write a time that is to come"),
                TriggerKind::Heartbeat(beat) if beat.every != Interval::ZERO => (
                    "heartbeat.activeHours",
                    "write hours that begin and end at different times",
                ),
                _ => return None,
            };
            let is_over = due(name, spec, now).is_ok_and(|times| times.is_empty());
            let message = format!("it never fires: no time of it is to come; {fix}");
            is_over.then(|| warning(format!("triggers.{name}.{field}"), message))
        })
        .collect()
}

/// Returns why a trigger fires later than its `cron` line says. Such a line has whole minutes.
fn later(name: &TriggerName, spec: &TriggerSpec, now: Timestamp) -> Option<&'static str> {
    let TriggerKind::Schedule(schedule) = &spec.on else {
        return None;
    };
    let mut times = due(name, spec, now).unwrap_or_default().into_iter();
    let is_later = schedule.cron.is_some() && times.any(|time| !time.0.is_multiple_of(MINUTE_MS));
    is_later.then_some("within five minutes of the whole hour, as `schedule.spread` says")
}

/// Returns the next times of a trigger's schedule, as clocks in its zone show them.
fn next_times(name: &TriggerName, spec: &TriggerSpec, now: Timestamp) -> Vec<String> {
    let zone = zone(spec);
    let times = due(name, spec, now).unwrap_or_default().into_iter();
    times.filter_map(|time| shown(time, &zone)).collect()
}

/// Returns the next times at which a trigger is due.
///
/// # Errors
/// The reason why there is no telling.
fn due(name: &TriggerName, spec: &TriggerSpec, now: Timestamp) -> Result<Vec<Timestamp>, String> {
    let schedule = spec.schedule().map_err(|error| error.to_string())?;
    let Some(schedule) = schedule.filter(|_| spec.enabled) else {
        return Ok(Vec::new());
    };
    let wanted = if schedule.is_once() { 1 } else { TIMES };
    let mut times = Vec::new();
    let mut after = now;
    while times.len() < wanted {
        let next = schedule.next(name, now, after);
        let Some(next) = next.map_err(|error| error.to_string())? else {
            break;
        };
        times.push(next);
        after = next;
    }
    Ok(times)
}

/// Returns when a trigger is fired, in words.
fn fires(config: &Config, name: &TriggerName, spec: &TriggerSpec, now: Timestamp) -> String {
    if !spec.enabled {
        return "never: it is not `enabled`".to_owned();
    }
    match &spec.on {
        TriggerKind::Webhook(_) => format!("when `POST /hooks/{name}` is called"),
        TriggerKind::Files(files) => {
            let granted = config.components.get(spec.component());
            let granted = granted.and_then(|it| {
                let mut folders = it.directories.iter();
                folders.find(|grant| grant.at == files.folder)
            });
            match granted {
                Some(grant) => format!("when files in `{}` change", grant.path.display()),
                None => "never: its component is granted no such folder".to_owned(),
            }
        }
        TriggerKind::Events(events) => {
            let kinds: Vec<&str> = events
                .on
                .iter()
                .copied()
                .map(HostEventKind::as_str)
                .collect();
            format!("on {}", kinds.join(", "))
        }
        TriggerKind::Heartbeat(beat) if beat.every == Interval::ZERO => {
            "never: its interval is 0".to_owned()
        }
        TriggerKind::Schedule(_) | TriggerKind::Heartbeat(_) => match due(name, spec, now) {
            Err(error) => format!("never: {error}"),
            Ok(times) if times.is_empty() => "never: no time of its schedule is to come".to_owned(),
            Ok(times) => match times.len() {
                1 => "once".to_owned(),
                _ => "next".to_owned(),
            },
        },
    }
}

/// Returns the zone of a trigger's schedule; that of intervals and of wrong names is UTC.
fn zone(spec: &TriggerSpec) -> TimeZone {
    let name = match &spec.on {
        TriggerKind::Schedule(schedule) => schedule.time_zone.as_deref(),
        TriggerKind::Heartbeat(beat) => {
            let hours = beat.active_hours.as_ref();
            hours.and_then(|hours| hours.time_zone.as_deref())
        }
        TriggerKind::Webhook(_) | TriggerKind::Files(_) | TriggerKind::Events(_) => None,
    };
    let found = name.and_then(|name| TimeZoneDatabase::bundled().get(name).ok());
    found.unwrap_or(TimeZone::UTC)
}

/// Returns a time as clocks in a zone show it; none beyond the calendar.
fn shown(time: Timestamp, zone: &TimeZone) -> Option<String> {
    let ms = i64::try_from(time.0).ok()?;
    let time = jiff::Timestamp::from_millisecond(ms).ok()?;
    let time = time.to_zoned(zone.clone());
    Some(time.strftime(TIME_FORM).to_string())
}

/// Returns the outlook of all connectors of a configuration.
pub(crate) fn connectors(config: &Config) -> Vec<ConnectorOutlook> {
    let connectors = config.connectors.iter();
    connectors
        .map(|(name, spec)| ConnectorOutlook {
            connector: name.to_string(),
            component: spec.component.clone(),
            agent: spec.agent.to_string(),
            intake: intake(spec),
            needs: needs(config, name.as_str(), spec),
        })
        .collect()
}

/// Returns the way of messages into the host.
fn intake(spec: &ConnectorSpec) -> &'static str {
    if spec.component == DIRECT {
        DIRECT
    } else {
        spec.intake().as_str()
    }
}

/// Returns what a connector has, and what has to be done elsewhere for it, in words.
fn needs(config: &Config, name: &str, spec: &ConnectorSpec) -> Vec<String> {
    if !spec.enabled {
        return vec!["stands still: it is not `enabled`".to_owned()];
    }
    if let Some(direct) = DirectSpec::of(spec) {
        // What is wrong with it is an error of the check.
        let origins = direct.map(|direct| direct.origins.join(", "));
        return vec![
            format!(
                "pages of {} reach it at `/chat/{name}`",
                origins.unwrap_or_default()
            ),
            "each visitor is a user of their own".to_owned(),
        ];
    }
    let mut needs = of_component(config, spec);
    if spec.intake() == Intake::Webhook {
        needs.push(format!(
            "its service has to call `/connectors/{name}/webhook` at the address under which it \
             reaches this host"
        ));
    }
    if let Some(check) = &spec.webhook {
        let named = std::iter::once(check.secret()).chain(check.verify_token());
        let named: Vec<String> = named.map(|secret| format!("`{secret}`")).collect();
        needs.push(format!("calls are verified with {}", named.join(" and ")));
    }
    needs.push(match spec.unknown {
        UnknownSender::Ignore => {
            format!("knows senders by their keys (`agent-host connector bind USER {name}:ID`)")
        }
        UnknownSender::Refuse => "tells unknown senders that they are not known".to_owned(),
        UnknownSender::Pair => {
            "gives unknown senders a code (`agent-host connector pair CODE USER`)".to_owned()
        }
    });
    if spec.groups == Groups::Bound {
        needs.push("hears groups that have a key".to_owned());
    }
    needs
}

/// Returns what a connector's component may use, in words.
fn of_component(config: &Config, spec: &ConnectorSpec) -> Vec<String> {
    let mut needs = Vec::new();
    let granted = config.components.get(&spec.component);
    let network = granted.map_or(&[][..], |it| it.network.as_slice());
    let hosts: Vec<String> = network.iter().map(|grant| grant.host.to_string()).collect();
    needs.push(match hosts.as_slice() {
        [] => "may send no request, and reaches no service".to_owned(),
        hosts => format!("may send requests to {}", hosts.join(", ")),
    });
    let secrets = granted.map_or(&[][..], |it| it.secrets.as_slice());
    needs.extend(
        secrets
            .iter()
            .map(|grant| format!("uses the secret `{}` for {}", grant.secret, grant.host)),
    );
    if secrets.is_empty() && !hosts.is_empty() {
        needs.push("uses no secret, so that its requests prove nothing to the service".to_owned());
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::{connectors, lines, never_due, triggers};
    use crate::config::Config;
    use domain::time::Timestamp;
    use serde_json::{Value, json};

    /// 2026-03-28T12:00:00Z, the day before clocks in Berlin are put forward.
    const NOW: Timestamp = Timestamp(1_774_699_200_000);

    fn config(of: Value) -> Config {
        serde_json::from_value(of).unwrap()
    }

    fn line(spec: &Value) -> String {
        let mut spec = spec.clone();
        let fields = spec.as_object_mut().unwrap();
        fields.insert("target".to_owned(), json!({ "agent": "a" }));
        let config = config(json!({ "triggers": { "t": spec } }));
        let [line] = lines(&triggers(&config, NOW), &[]).try_into().unwrap();
        line.trim_start_matches("  trigger     ").to_owned()
    }

    #[test]
    fn the_next_times_of_a_schedule_are_told_in_its_zone() {
        let cron = json!({ "cron": "30 7 * * *", "timeZone": "Europe/Berlin" });
        assert_eq!(
            line(&json!({ "schedule": cron })),
            "t (schedule) fires next: 2026-03-29T07:30:00+02:00, 2026-03-30T07:30:00+02:00, \
             2026-03-31T07:30:00+02:00"
        );
        assert_eq!(
            line(&json!({ "schedule": { "every": "12h" } })),
            "t (schedule) fires next: 2026-03-29T00:00:00+00:00, 2026-03-29T12:00:00+00:00, \
             2026-03-30T00:00:00+00:00"
        );
        assert_eq!(
            line(&json!({ "schedule": { "at": "2026-04-01T00:00:00Z" } })),
            "t (schedule) fires once: 2026-04-01T00:00:00+00:00"
        );
    }

    #[test]
    fn what_never_fires_is_told_with_the_reason() {
        for (spec, why) in [
            (
                json!({ "schedule": { "at": "2026-01-01T00:00:00Z" } }),
                "no time of its schedule is to come",
            ),
            (
                json!({ "schedule": { "every": "1h" }, "enabled": false }),
                "it is not `enabled`",
            ),
            (
                json!({ "heartbeat": { "every": "0" } }),
                "its interval is 0",
            ),
            (
                json!({ "files": { "folder": "/in" } }),
                "its component is granted no such folder",
            ),
        ] {
            let line = line(&spec);
            assert!(line.ends_with(&format!("fires never: {why}")), "{line}");
        }
    }

    #[test]
    fn a_time_that_is_spread_says_so() {
        let spread = |spread: bool| {
            let cron =
                json!({ "cron": "0 9 * * *", "timeZone": "Europe/Berlin", "spread": spread });
            line(&json!({ "schedule": cron }))
        };
        assert!(
            spread(true)
                .ends_with("; within five minutes of the whole hour, as `schedule.spread` says")
        );
        assert!(spread(false).ends_with("2026-03-31T09:00:00+02:00"));
    }

    #[test]
    fn a_trigger_whose_times_are_over_is_a_warning_and_one_that_is_off_is_none() {
        let target = json!({ "agent": "a" });
        let hours = json!({ "start": "08:00", "end": "08:00" });
        let config = config(json!({ "triggers": {
            "hours": { "heartbeat": { "activeHours": hours }, "target": target },
            "off": { "heartbeat": { "every": "0" }, "target": target },
            "over": { "schedule": { "at": "2026-01-01T00:00:00Z" }, "target": target },
            "still": {
                "schedule": { "at": "2026-01-01T00:00:00Z" }, "target": target, "enabled": false,
            },
            "to-come": { "schedule": { "every": "1h" }, "target": target },
        } }));
        let keys: Vec<String> = never_due(&config, NOW)
            .into_iter()
            .map(|finding| finding.key)
            .collect();
        assert_eq!(
            keys,
            [
                "triggers.hours.heartbeat.activeHours",
                "triggers.over.schedule"
            ]
        );
    }

    #[test]
    fn triggers_without_a_schedule_are_told_with_what_fires_them() {
        let auth = json!({ "token": { "secret": "hook" } });
        assert_eq!(
            line(&json!({ "webhook": { "auth": auth } })),
            "t (webhook) fires when `POST /hooks/t` is called"
        );
        assert_eq!(
            line(&json!({ "events": { "on": ["input.dead", "budget.80"] } })),
            "t (events) fires on input.dead, budget.80"
        );
        let hooks = json!({ "token": "hook", "user": "ada", "agent": "a" });
        let hooks = triggers(&config(json!({ "hooks": hooks })), NOW);
        assert_eq!(
            lines(&hooks, &[]),
            [
                "  trigger     agent (webhook) fires when `POST /hooks/agent` is called; heard \
                 by the agent /ada/agent/a",
                "  trigger     wake (webhook) fires when `POST /hooks/wake` is called; heard by \
                 the agent /ada/agent/a",
            ]
        );
    }

    #[test]
    fn a_connector_is_told_with_what_it_needs() {
        let config = config(json!({
            "components": { "telegram": {
                "network": [{ "host": "api.telegram.org", "methods": ["POST"] }],
            } },
            "connectors": { "chat": {
                "component": "telegram", "agent": "a", "unknown": "pair",
                "webhook": { "telegram": { "secret": "hook" } },
            } },
        }));
        assert_eq!(
            lines(&[], &connectors(&config)),
            [
                "  connector   chat (webhook) talks as a",
                "              may send requests to api.telegram.org",
                "              uses no secret, so that its requests prove nothing to the service",
                "              its service has to call `/connectors/chat/webhook` at the address \
                 under which it reaches this host",
                "              calls are verified with `hook`",
                "              gives unknown senders a code (`agent-host connector pair CODE USER`)",
            ]
        );
    }
}
