//! A host under siege: one hostile guest again and again, an honest tenant beside it, and a look at what is left when it is over.

use agent_host_tests::guests::wasm;
use agent_host_tests::{Setup, World};
use domain::authority::Rule;
use domain::egress::EgressGrant;
use domain::event::{BoundaryDecided, Decision, Event, STEP, TOOL_CALL, Verdict};
use domain::grant::{Grant, GuestLimits, PatternList};
use domain::id::SessionId;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The variable that asks for the full number of repeats.
pub(super) const ATTACKS: &str = "AGENT_HOST_ATTACKS";
/// Repeats of an attack, and in the whole set.
const REPEATS: (usize, usize) = (20, 1_000);
/// Repeats of an attack of which one takes longer than [`SLOW`].
const REPEATS_SLOW: (usize, usize) = (3, 20);
/// From here on an attack is slow.
const SLOW: Duration = Duration::from_millis(50);
/// Attacks of one turn.
const BATCH: usize = 20;
/// How long the host may take to give back what it lent.
const SETTLED: Duration = Duration::from_secs(5);
/// Descriptors that the process may have opened, for readers of its store.
const DESCRIPTORS_MAX: usize = 16;
/// Bytes that the process may have grown by, its events and caches included.
const GROWTH_BYTES_MAX: u64 = 96 << 20;
/// What the honest tenant does, and what it is told.
const HONEST: &str = r#"{"steps":[{"until":"all","start":[{"key":"t","tool":"look"},{"key":"m","model":"x","hidden":true}]}]}"#;

/// Whether the full number of repeats is asked for.
pub(super) fn is_whole() -> bool {
    std::env::var_os(ATTACKS).is_some_and(|value| value == "whole")
}

/// Limits under which a case takes milliseconds. Computing is not among them: on a busy machine little of it may take long.
pub(super) fn narrow() -> GuestLimits {
    GuestLimits { memory_bytes_max: 8 << 20, cpu_ms_max: 2_000, wall_ms_max: 10_000, log_bytes_max: 4 << 10, ..GuestLimits::default() }
}

/// The same for guests that compute until they are stopped.
pub(super) fn brief() -> GuestLimits {
    GuestLimits { cpu_ms_max: 20, ..narrow() }
}

/// What the ledger has of a call.
#[derive(Debug, Clone)]
struct Line {
    capability: &'static str,
    verdict: Verdict,
    rule: Rule,
    detail: &'static str,
}

impl Line {
    fn is(&self, decision: &Decision) -> bool {
        let Self { capability, verdict, rule, detail } = self;
        (decision.capability.as_str(), decision.verdict, decision.rule) == (*capability, *verdict, *rule)
            && decision.detail.contains(detail)
    }
}

/// One attack, and what has to come of it.
#[derive(Debug)]
pub(super) struct Case {
    attack: &'static str,
    arguments: Value,
    tool: &'static str,
    grant: Grant,
    made: Option<Vec<u8>>,
    told: &'static str,
    lines: Vec<Line>,
    never: &'static [&'static str],
}

impl Case {
    /// An attack that the caller is told this of, from its beginning on.
    pub(super) fn of(attack: &'static str, told: &'static str) -> Self {
        let grant = Grant { limits: narrow(), ..Grant::default() };
        Self { attack, arguments: json!({}), tool: "attack", grant, made: None, told, lines: Vec::new(), never: &[] }
    }

    /// With more arguments than its name.
    pub(super) fn with(mut self, arguments: Value) -> Self {
        self.arguments = arguments;
        self
    }

    /// Under other limits than [`narrow`] ones.
    pub(super) fn under(mut self, limits: GuestLimits) -> Self {
        self.grant.limits = limits;
        self
    }

    /// By the tool that asks for requests, with these granted.
    pub(super) fn online(mut self, network: Vec<EgressGrant>) -> Self {
        (self.tool, self.grant.network) = ("attack_online", network);
        self
    }

    /// By this component instead of `hostile`.
    pub(super) fn by(mut self, component: Vec<u8>) -> Self {
        self.made = Some(component);
        self
    }

    /// A limit of the call is met, and the ledger says which.
    pub(super) fn met(self, limit: &'static str) -> Self {
        self.line(TOOL_CALL, Verdict::Limited, Rule::Limits, limit)
    }

    /// The boundary refuses something, and the ledger says what.
    pub(super) fn refused(self, capability: &'static str, detail: &'static str) -> Self {
        self.line(capability, Verdict::Refused, Rule::NotGranted, detail)
    }

    /// What the caller is told has none of these in it.
    pub(super) fn and_no_reply_has(mut self, never: &'static [&'static str]) -> Self {
        self.never = never;
        self
    }

    /// The ledger has a decision like this.
    pub(super) fn line(mut self, capability: &'static str, verdict: Verdict, rule: Rule, detail: &'static str) -> Self {
        self.lines.push(Line { capability, verdict, rule, detail });
        self
    }

    fn setup(&self) -> Setup {
        let mut setup = Setup { components: vec!["puppet", "effects"], grants: vec![("hostile", self.grant.clone())], ..Setup::default() };
        setup.definitions.truncate(2);
        setup.made.push(("hostile", self.made.clone().unwrap_or_else(|| wasm("hostile"))));
        setup
    }

    /// Attacks often enough, and looks at everything that must hold meanwhile and afterwards.
    pub(super) async fn prove(self) {
        let siege = Siege::of(World::new(self.setup()).await).await;
        self.assail(&siege).await;
        siege.over().await;
    }

    /// The same in a siege that goes on.
    pub(super) async fn assail(&self, siege: &Siege) {
        let began = Instant::now();
        self.batch(siege, 1).await;
        let repeats = if began.elapsed() > SLOW * 2 { REPEATS_SLOW } else { REPEATS };
        let mut left = if is_whole() { repeats.1 } else { repeats.0 };
        while left > 0 {
            let now = left.min(BATCH);
            tokio::join!(self.batch(siege, now), siege.serves());
            left -= now;
        }
    }

    /// So many attacks in one turn, all of them judged.
    async fn batch(&self, siege: &Siege, attacks: usize) {
        let mut arguments = self.arguments.clone();
        arguments["attack"] = json!(self.attack);
        let start: Vec<Value> = (0..attacks).map(|n| json!({ "key": format!("t{n}"), "tool": self.tool, "args": arguments })).collect();
        let session = siege.world.open("puppet").await;
        siege.world.say("puppet", session, &json!({ "steps": [{ "until": "all", "start": start }] }).to_string()).await;
        siege.world.idle(session).await;
        let told = siege.world.last_reply(session).await;
        assert!(self.never.iter().all(|never| !told.contains(never)), "{}: {told:?}", self.attack);
        let told: Vec<&str> = told.lines().filter_map(|line| line.split_once(' ').map(|(_, told)| told)).collect();
        assert_eq!(told.len(), attacks, "{}: {told:?}", self.attack);
        assert!(told.iter().all(|told| told.starts_with(self.told)), "{}: {told:?}", self.attack);
        let entries = siege.ledger(session).await;
        let entries: Vec<_> = entries.iter().filter(|entry| entry.tool.as_deref() == Some(self.tool)).collect();
        assert_eq!(entries.len(), attacks, "{}: one entry of the ledger for each call: {entries:?}", self.attack);
        for entry in entries {
            assert!(entry.code.is_some() && entry.grant.is_some() && entry.component.as_deref() == Some("hostile"), "{entry:?}");
            for line in &self.lines {
                assert!(entry.decisions.iter().any(|decision| line.is(decision)), "{}: no {line:?} in {:?}", self.attack, entry.decisions);
            }
            let granted = entry.decisions.iter().any(|decision| decision.verdict == Verdict::Granted);
            assert!(!granted || !self.grant.network.is_empty(), "{}: {:?}", self.attack, entry.decisions);
        }
    }
}

/// Proves an attack of an agent: what its turn came to, and which limit the ledger names for each attempt at its step.
pub(super) async fn of_an_agent(attack: &'static str, said: &str, failed: Option<(&str, Option<&str>)>) {
    let mut setup = Setup { components: vec!["puppet", "effects"], ..Setup::default() };
    setup.definitions.truncate(2);
    let rogue = json!({ "agentId": "rogue", "displayName": "Rogue", "component": "rogue", "toolAllowlist": [], "agentAllowlist": [],
                        "limits": { "stepsMax": 5 } });
    setup.definitions.push(rogue);
    setup.components.push("rogue");
    let limits = GuestLimits { memory_bytes_max: 64 << 20, cpu_ms_max: 300, ..narrow() };
    setup
        .grants
        .push(("rogue", Grant { limits, models: PatternList::everything(), agents: PatternList::everything(), ..Grant::default() }));
    let siege = Siege::of(World::new(setup).await).await;
    let repeats = if is_whole() { REPEATS.1 / 5 } else { REPEATS_SLOW.0 };
    for _ in 0..repeats {
        let session = siege.world.open("rogue").await;
        siege.world.say("rogue", session, attack).await;
        tokio::join!(siege.world.idle(session), siege.serves());
        // A turn whose first step never succeeds leaves a dead letter and no reply.
        let dead = siege.events(session).await.into_iter().find_map(|event| match event {
            Event::InputDead(dead) => Some(format!("The turn failed: {}", dead.reason)),
            _ => None,
        });
        let reply = dead.unwrap_or(siege.world.last_reply(session).await);
        assert!(reply.starts_with(said), "{attack}: {reply}");
        let steps = siege.failed_steps(session).await;
        let Some((outcome, limit)) = failed else {
            assert!(steps.is_empty(), "{attack}: {steps:?}");
            continue;
        };
        assert_eq!(steps, vec![outcome; 3], "{attack}: three attempts and no more");
        let lines: Vec<_> = siege.ledger(session).await.into_iter().flat_map(|entry| entry.decisions).collect();
        let of_limit = lines.iter().filter(|line| line.capability == STEP && Some(line.detail.as_str()) == limit).count();
        assert_eq!(of_limit, if limit.is_some() { 3 } else { 0 }, "{attack}: {lines:?}");
    }
    siege.over().await;
}

/// What the process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    resident_bytes: u64,
}

impl Held {
    fn now() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        Self { descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(), resident_bytes: pages * 4_096 }
    }
}

/// A world under attack, and what its process held before.
pub(super) struct Siege {
    pub(super) world: World,
    before: Held,
}

impl Siege {
    /// Begins when the honest tenant has been served.
    pub(super) async fn of(world: World) -> Self {
        let siege = Self { world, before: Held { descriptors: 0, resident_bytes: 0 } };
        siege.serves().await;
        Self { before: Held::now(), ..siege }
    }

    /// The honest tenant is served, and told the truth.
    pub(super) async fn serves(&self) {
        let session = self.world.open("other").await;
        self.world.say("other", session, HONEST).await;
        self.world.idle(session).await;
        let told = self.world.last_reply(session).await;
        let mut told: Vec<&str> = told.lines().collect();
        told.sort_unstable();
        assert_eq!(told, ["m parts hello from the model", "t parts look done"], "the honest tenant");
    }

    /// What the boundary decided for a session's turns.
    pub(super) async fn ledger(&self, session: SessionId) -> Vec<BoundaryDecided> {
        let decided = |event| if let Event::BoundaryDecided(decided) = event { Some(*decided) } else { None };
        self.events(session).await.into_iter().filter_map(decided).collect()
    }

    /// How the steps of a session's turns failed.
    async fn failed_steps(&self, session: SessionId) -> Vec<String> {
        let failed = |event| if let Event::StepFailed(failed) = event { Some(failed.outcome) } else { None };
        self.events(session).await.into_iter().filter_map(failed).collect()
    }

    /// All events of a session.
    pub(super) async fn events(&self, session: SessionId) -> Vec<Event> {
        let filter = store::EventFilter { session: Some(session), ..store::EventFilter::default() };
        let rows = self.world.store().events(0, filter, 1_000_000).await.unwrap();
        rows.into_iter().filter_map(|row| row.event).collect()
    }

    /// Ends when the honest tenant was served once more and everything that was lent is back.
    pub(super) async fn over(self) {
        self.serves().await;
        let patience = Instant::now() + SETTLED;
        loop {
            let (stats, now) = (self.world.runtime.stats(), Held::now());
            let is_back = (stats.in_flight, stats.waiting, stats.memory_bytes) == (0, 0, 0);
            // The process is that of one test alone only under a runner that makes it so.
            let is_alone = std::env::var_os("NEXTEST").is_some();
            let has_not_grown = now.descriptors <= self.before.descriptors + DESCRIPTORS_MAX
                && now.resident_bytes <= self.before.resident_bytes + GROWTH_BYTES_MAX;
            if is_back && (has_not_grown || !is_alone) {
                break;
            }
            assert!(Instant::now() < patience, "not given back: {stats:?}, {now:?} after {:?}", self.before);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
