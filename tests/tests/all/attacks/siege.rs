//! A host under siege: one hostile guest again and again, an honest tenant beside it, and an
//! inspection of what is left when it is over.

use super::super::secrets::{CANARY, leaks, leaky_files};
use agent_host_tests::guests::wasm;
use agent_host_tests::repeats::is_whole;
use agent_host_tests::{Setup, World};
use domain::egress::EgressGrant;
use domain::event::{BoundaryDecided, BoundaryDecision, BoundaryVerdict, Event};
use domain::grant::{Grant, GuestLimits, PatternList};
use domain::id::SessionId;
use domain::ruling::{Rule, TOOL_CALL};
use futures::future::join_all;
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Repeats of an attack, and in the whole set.
const REPEATS: (usize, usize) = (20, 1_000);
/// Repeats of an attack of which one takes longer than [`SLOW`].
const REPEATS_SLOW: (usize, usize) = (3, 20);
/// The time from which on an attack is slow.
const SLOW: Duration = Duration::from_millis(50);
/// Attacks at once.
const BATCH: usize = 20;
/// Bytes of the arguments of all attacks of one turn.
const ARGUMENTS_BYTES_MAX: usize = 20 << 10;
/// Time that the host has to give back what it lent.
const SETTLED: Duration = Duration::from_secs(5);
/// Descriptors that the process may have opened since the first attacks, for readers of its store.
const DESCRIPTORS_MAX: usize = 2;
/// Bytes that the process may have grown by in one round of attacks, the events in its caches
/// included.
const GROWTH_BYTES_MAX: u64 = 8 << 20;
/// Rounds of attacks in one of which the process must not have grown: an allocator keeps what many
/// tasks at once have needed.
const ROUNDS_MAX: usize = 3;
/// The script of the honest tenant.
const HONEST: &str = r#"{"steps":[{"until":"all","start":[
    {"key":"t","tool":"look"},{"key":"m","model":"x","hidden":true}
]}]}"#;

/// Repeats of what is slow and no siege: a start of the program, a compilation.
pub(super) fn repeats_of_slow() -> usize {
    if is_whole() { REPEATS_SLOW.1 } else { 1 }
}

/// Limits under which a case takes milliseconds. Computing is not among them: on a busy machine
/// little of it may take long.
pub(super) fn narrow() -> GuestLimits {
    GuestLimits {
        memory_bytes_max: 8 << 20,
        cpu_ms_max: 2_000,
        wall_ms_max: 10_000,
        log_bytes_max: 4 << 10,
        ..GuestLimits::default()
    }
}

/// The same for guests that compute until they are stopped.
pub(super) fn brief() -> GuestLimits {
    GuestLimits {
        cpu_ms_max: 20,
        ..narrow()
    }
}

/// One decision of the ledger; of its detail a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    capability: &'static str,
    verdict: BoundaryVerdict,
    rule: Rule,
    detail: &'static str,
}

impl Line {
    /// A limit was met.
    pub(super) const fn limited(capability: &'static str, limit: &'static str) -> Self {
        Self {
            capability,
            verdict: BoundaryVerdict::Limited,
            rule: Rule::Limits,
            detail: limit,
        }
    }

    /// Something was done, under a grant.
    pub(super) const fn granted(capability: &'static str, detail: &'static str) -> Self {
        Self {
            capability,
            verdict: BoundaryVerdict::Granted,
            rule: Rule::Granted,
            detail,
        }
    }

    /// A rule refused something.
    pub(super) const fn refused(
        capability: &'static str,
        rule: Rule,
        detail: &'static str,
    ) -> Self {
        Self {
            capability,
            verdict: BoundaryVerdict::Refused,
            rule,
            detail,
        }
    }

    fn is(&self, decision: &BoundaryDecision) -> bool {
        let Self {
            capability,
            verdict,
            rule,
            detail,
        } = self;
        (
            decision.capability.as_str(),
            decision.verdict,
            decision.rule,
        ) == (*capability, *verdict, *rule)
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
    reported: String,
    /// Tells whether one answer of the guest's list of answers is good.
    answering: Option<fn(&str) -> bool>,
    /// The lines that must be in the ledger; when empty, there must be none.
    lines: Vec<Line>,
    never: &'static [&'static str],
}

impl Case {
    /// An attack, with the beginning of the answer that the caller gets.
    pub(super) fn of(attack: &'static str, reported: impl Into<String>) -> Self {
        let grant = Grant {
            limits: narrow(),
            ..Grant::default()
        };
        let arguments = json!({});
        let reported = reported.into();
        Self {
            attack,
            arguments,
            tool: "attack",
            grant,
            made: None,
            reported,
            answering: None,
            lines: Vec::new(),
            never: &[],
        }
    }

    /// Adds arguments beside its name.
    pub(super) fn with(mut self, arguments: Value) -> Self {
        self.arguments = arguments;
        self
    }

    /// Under other limits than [`narrow`] ones.
    pub(super) fn under(mut self, limits: GuestLimits) -> Self {
        self.grant.limits = limits;
        self
    }

    /// Makes it by the tool that asks for requests, with these granted.
    pub(super) fn online(mut self, network: Vec<EgressGrant>) -> Self {
        self.tool = "attack_online";
        self.grant.network = network;
        self
    }

    /// Makes it by this component instead of `hostile`.
    pub(super) fn by(mut self, component: Vec<u8>) -> Self {
        self.made = Some(component);
        self
    }

    /// Makes it by this tool of a program that does what its arguments say, under a grant with
    /// [`narrow`] limits.
    pub(super) fn of_program(mut self, program: Vec<u8>, tool: &'static str, grant: Grant) -> Self {
        self.made = Some(program);
        self.tool = tool;
        self.grant = Grant {
            limits: narrow(),
            ..grant
        };
        self
    }

    /// It tells a list of answers, each of them such a one.
    pub(super) fn answering(mut self, is_good: fn(&str) -> bool) -> Self {
        self.answering = Some(is_good);
        self
    }

    /// A limit of the call is met, and the ledger says which.
    pub(super) fn met(self, limit: &'static str) -> Self {
        self.line(TOOL_CALL, BoundaryVerdict::Limited, Rule::Limits, limit)
    }

    /// The boundary refuses something, and the ledger says what.
    pub(super) fn refused(self, capability: &'static str, detail: &'static str) -> Self {
        self.line(
            capability,
            BoundaryVerdict::Refused,
            Rule::NotGranted,
            detail,
        )
    }

    /// Expects that the tool's result breaks the contract, and that the ledger says which part of
    /// it.
    pub(super) fn breaks_the_contract(self, detail: &'static str) -> Self {
        self.line(TOOL_CALL, BoundaryVerdict::Refused, Rule::Contract, detail)
    }

    /// Expects that no reply to the caller has one of these in it.
    pub(super) fn and_no_reply_has(mut self, never: &'static [&'static str]) -> Self {
        self.never = never;
        self
    }

    /// The ledger has a decision like this.
    pub(super) fn line(
        mut self,
        capability: &'static str,
        verdict: BoundaryVerdict,
        rule: Rule,
        detail: &'static str,
    ) -> Self {
        self.lines.push(Line {
            capability,
            verdict,
            rule,
            detail,
        });
        self
    }

    fn setup(&self) -> Setup {
        let mut setup = Setup {
            components: vec!["puppet", "effects"],
            grants: vec![("hostile", self.grant.clone())],
            ..Setup::default()
        };
        setup.definitions.truncate(2);
        setup.secrets = vec![("github", CANARY)];
        setup.made.push((
            "hostile",
            self.made.clone().unwrap_or_else(|| wasm("hostile")),
        ));
        setup
    }

    /// Attacks often enough, looks at everything that must hold meanwhile and afterwards, and says
    /// how many attacks there were.
    pub(super) async fn prove(self) -> usize {
        let siege = Siege::of(World::new(self.setup()).await).await;
        let attacks =
            Box::pin(siege.withstands(async |attacks| self.batch(&siege, attacks).await)).await;
        let folder = siege.world.dir.clone();
        siege.over().await;
        assert_eq!(
            leaky_files(folder.path()),
            Vec::<String>::new(),
            "{}",
            self.attack
        );
        attacks
    }

    /// Makes so many attacks, in as many turns as their arguments need.
    async fn batch(&self, siege: &Siege, attacks: usize) {
        let of_a_turn = (ARGUMENTS_BYTES_MAX / self.arguments.to_string().len()).max(1);
        let mut left = attacks;
        while left > 0 {
            let now = left.min(of_a_turn);
            self.turn(siege, now).await;
            left -= now;
        }
    }

    /// Makes so many attacks in one turn, all of them judged.
    async fn turn(&self, siege: &Siege, attacks: usize) {
        let mut arguments = self.arguments.clone();
        arguments["attack"] = json!(self.attack);
        let start: Vec<Value> = (0..attacks)
            .map(|n| json!({ "key": format!("t{n}"), "tool": self.tool, "args": arguments }))
            .collect();
        let session = siege.world.open("puppet").await;
        siege
            .world
            .play_in(session, &json!([{ "until": "all", "start": start }]))
            .await;
        siege.world.idle(session).await;
        let whole = siege.world.last_reply(session).await;
        let reported = &whole;
        assert!(
            self.never.iter().all(|never| !reported.contains(never)) && !leaks(reported.as_bytes()),
            "{}: {reported:?}",
            self.attack
        );
        // What a guest tells may have lines of its own.
        let is_key = |key: &str| {
            key.strip_prefix('t')
                .is_some_and(|n| n.parse::<usize>().is_ok())
        };
        let reported: Vec<&str> = reported
            .lines()
            .filter_map(|line| line.split_once(' ').filter(|(key, _)| is_key(key)))
            .map(|(_, reported)| reported)
            .collect();
        assert_eq!(reported.len(), attacks, "{}: {whole:.1000}", self.attack);
        assert!(
            reported
                .iter()
                .all(|reported| reported.starts_with(&self.reported)),
            "{}: {reported:?}",
            self.attack
        );
        if let Some(is_good) = self.answering {
            for reported in reported {
                let answers: Vec<String> =
                    serde_json::from_str(reported.trim_start_matches("parts ")).unwrap();
                let bad: Vec<(usize, &String)> = answers
                    .iter()
                    .enumerate()
                    .filter(|(_, answer)| !is_good(answer))
                    .collect();
                assert!(bad.is_empty(), "{}: {bad:?}", self.attack);
            }
        }
        let entries = siege.ledger(session).await;
        let entries: Vec<_> = entries
            .iter()
            .filter(|entry| entry.tool.as_deref() == Some(self.tool))
            .collect();
        assert_eq!(
            entries.len(),
            attacks,
            "{}: one entry of the ledger for each call: {entries:?}",
            self.attack
        );
        for entry in entries {
            assert!(
                entry.code.is_some()
                    && entry.grant.is_some()
                    && entry.component.as_deref() == Some("hostile"),
                "{entry:?}"
            );
            assert!(
                !self.lines.is_empty() || entry.decisions.is_empty(),
                "{}: nothing was expected: {:?}",
                self.attack,
                entry.decisions
            );
            for line in &self.lines {
                assert!(
                    entry.decisions.iter().any(|decision| line.is(decision)),
                    "{}: no {line:?} in {:?}",
                    self.attack,
                    entry.decisions
                );
            }
            let is_granted = entry
                .decisions
                .iter()
                .any(|decision| decision.verdict == BoundaryVerdict::Granted);
            let has_grant = !self.grant.network.is_empty() || !self.grant.directories.is_empty();
            assert!(
                !is_granted || has_grant,
                "{}: {:?}",
                self.attack,
                entry.decisions
            );
        }
    }
}

/// The expected end of an attacking agent's turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    /// It ends with exactly this text, and no step of it failed.
    Replies(&'static str),
    /// It ends with a notice that begins so, and no step of it failed.
    Ends(&'static str),
    /// Three attempts at its first step fail in this way, and the reason that is given begins so.
    Fails(&'static str, &'static str),
}

/// The expected ledger of such a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ledger {
    /// These lines, each so many times, and nothing else.
    Lines(&'static [(usize, Line)]),
    /// No decision at all, for this reason.
    Nothing(&'static str),
}

impl Ledger {
    fn prove(self, attack: &str, decided: &[BoundaryDecision]) {
        let (expected, why): (&[(usize, Line)], _) = match self {
            Self::Lines(lines) => (lines, "and no others"),
            Self::Nothing(why) => (&[], why),
        };
        for (times, line) in expected {
            let found = decided.iter().filter(|decision| line.is(decision)).count();
            assert_eq!(found, *times, "{attack}: {line:?} in {decided:?}");
        }
        let all: usize = expected.iter().map(|(times, _)| times).sum();
        assert_eq!(decided.len(), all, "{attack}: {why}: {decided:?}");
    }
}

/// Proves an attack of an agent: the end of its turn, the failures of its steps, and its whole
/// ledger.
pub(super) async fn of_an_agent(attack: &str, turn: Turn, ledger: Ledger) {
    let mut setup = Setup {
        components: vec!["puppet", "effects"],
        ..Setup::default()
    };
    setup.definitions.truncate(2);
    let rogue = json!({
        "agentId": "rogue", "displayName": "Rogue", "component": "rogue", "toolAllowlist": [],
        "agentAllowlist": [],
        "limits": { "stepsMax": 5 },
    });
    setup.definitions.push(rogue);
    setup.components.push("rogue");
    let limits = GuestLimits {
        memory_bytes_max: 64 << 20,
        cpu_ms_max: 300,
        ..narrow()
    };
    setup.grants.push((
        "rogue",
        Grant {
            limits,
            models: PatternList::everything(),
            agents: PatternList::everything(),
            ..Grant::default()
        },
    ));
    let siege = Siege::of(World::new(setup).await).await;
    siege
        .withstands(async |turns| {
            drop(join_all((0..turns).map(|_| siege.turn_of_an_agent(attack, turn, ledger))).await)
        })
        .await;
    siege.over().await;
}

/// The resources that the process holds.
#[derive(Debug, Clone, Copy)]
struct ResourceUse {
    descriptors: usize,
    resident_bytes: u64,
}

impl ResourceUse {
    fn now() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            resident_bytes: pages * 4_096,
        }
    }
}

/// A world under attack, and what its process held when it had been attacked for a while.
pub(super) struct Siege {
    pub(super) world: World,
    before: Cell<Option<ResourceUse>>,
}

impl Siege {
    /// One without an honest tenant.
    pub(super) fn alone(world: World) -> Self {
        Self {
            world,
            before: Cell::new(None),
        }
    }

    /// Begins when the honest tenant has been served.
    pub(super) async fn of(world: World) -> Self {
        let siege = Self::alone(world);
        siege.serves().await;
        siege
    }

    /// Has so many attacks made as the rule of repeats says. The first ones fill caches and open
    /// what stays open; from then on the process may not grow. Attacks go on without a pause until
    /// the honest tenant was served, batch after batch. Says how many there were.
    pub(super) async fn withstands(&self, attack: impl AsyncFn(usize)) -> usize {
        let began = Instant::now();
        attack(1).await;
        let repeats = if began.elapsed() > SLOW * 2 {
            REPEATS_SLOW
        } else {
            REPEATS
        };
        let first = BATCH.min(repeats.0);
        attack(first).await;
        let mut made = 1 + first;
        self.rests().await;
        let repeats = if is_whole() { repeats.1 } else { repeats.0 };
        let mut grown = Vec::new();
        // What leaks grows in every round; what is only held for the next time does not.
        for _ in 0..ROUNDS_MAX {
            let before = ResourceUse::now();
            made += self.round(&attack, repeats).await;
            self.rests().await;
            match self.holds_no_more_than(before).await {
                Ok(()) => {
                    self.before.set(Some(before));
                    return made;
                }
                Err(now) => grown.push((before, now)),
            }
        }
        panic!("it grew in every round: {grown:?}");
    }

    /// Makes so many attacks, or some more until the honest tenant was served beside them. Returns
    /// the number that was made.
    async fn round(&self, attack: &impl AsyncFn(usize), attacks: usize) -> usize {
        let mut made = 0;
        let mut left = attacks;
        while left > 0 {
            let now = left.min(BATCH);
            let is_served = Cell::new(false);
            let attacks = async {
                while !is_served.get() {
                    attack(now).await;
                    made += now;
                    left = left.saturating_sub(now);
                }
            };
            let honest = async {
                self.serves().await;
                is_served.set(true);
            };
            tokio::join!(attacks, honest);
        }
        made
    }

    /// Waits until the process holds what it held, a little more at most.
    ///
    /// # Errors
    /// What it holds instead.
    async fn holds_no_more_than(&self, before: ResourceUse) -> Result<(), ResourceUse> {
        // The process is that of one test alone only under a runner that makes it so.
        if std::env::var_os("NEXTEST").is_none() {
            return Ok(());
        }
        let patience = Instant::now() + SETTLED;
        loop {
            let now = ResourceUse::now();
            if now.descriptors <= before.descriptors + DESCRIPTORS_MAX
                && now.resident_bytes <= before.resident_bytes + GROWTH_BYTES_MAX
            {
                return Ok(());
            }
            if Instant::now() >= patience {
                return Err(now);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until everything that was lent is back.
    async fn rests(&self) {
        let patience = Instant::now() + SETTLED;
        loop {
            let stats = self.world.runtime.stats();
            if (stats.in_flight, stats.waiting, stats.memory_bytes) == (0, 0, 0) {
                return;
            }
            assert!(Instant::now() < patience, "not given back: {stats:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Checks that the honest tenant is served, with a correct answer.
    pub(super) async fn serves(&self) {
        let session = self.world.open("other").await;
        let reported = self.world.turn("other", session, HONEST).await;
        let mut reported: Vec<&str> = reported.lines().collect();
        reported.sort_unstable();
        assert_eq!(
            reported,
            ["m parts hello from the model", "t parts look done"],
            "the honest tenant"
        );
    }

    /// Returns the decisions of the boundary on a session's turns.
    pub(super) async fn ledger(&self, session: SessionId) -> Vec<BoundaryDecided> {
        let events = self.events(session).await.into_iter();
        events.flat_map(|event| event.ledger().to_vec()).collect()
    }

    /// One turn of an agent that attacks, judged.
    async fn turn_of_an_agent(&self, attack: &str, turn: Turn, ledger: Ledger) {
        let session = self.world.open("rogue").await;
        self.world.turn("rogue", session, attack).await;
        // A turn whose first step never succeeds leaves a dead letter and no reply.
        let dead = self
            .events(session)
            .await
            .into_iter()
            .find_map(|event| match event {
                Event::InputDead(dead) => Some(dead.reason),
                _ => None,
            });
        let reply = self.world.last_reply(session).await;
        let steps = self.failed_steps(session).await;
        match turn {
            Turn::Replies(whole) => assert_eq!(
                (reply.as_str(), &dead, steps.len()),
                (whole, &None, 0),
                "{attack}: {steps:?}"
            ),
            Turn::Ends(why) => {
                assert!(
                    reply.starts_with(why) && dead.is_none() && steps.is_empty(),
                    "{attack}: {reply} {dead:?} {steps:?}"
                )
            }
            Turn::Fails(outcome, why) => {
                assert!(
                    dead.as_ref().is_some_and(|reason| reason.starts_with(why)),
                    "{attack}: {dead:?} {reply}"
                );
                assert_eq!(
                    steps,
                    vec![outcome; 3],
                    "{attack}: three attempts and no more"
                );
            }
        }
        let decided: Vec<BoundaryDecision> = self
            .ledger(session)
            .await
            .into_iter()
            .flat_map(|entry| entry.decisions)
            .collect();
        ledger.prove(attack, &decided);
    }

    /// Returns the outcomes of the failed steps in a session's turns.
    async fn failed_steps(&self, session: SessionId) -> Vec<String> {
        let failed = |event| {
            if let Event::StepFailed(failed) = event {
                Some(failed.outcome.to_string())
            } else {
                None
            }
        };
        self.events(session)
            .await
            .into_iter()
            .filter_map(failed)
            .collect()
    }

    /// All events of a session.
    pub(super) async fn events(&self, session: SessionId) -> Vec<Event> {
        let filter = store::EventFilter {
            session: Some(session),
            ..store::EventFilter::default()
        };
        let rows = self
            .world
            .store()
            .events(0, filter, 1_000_000)
            .await
            .unwrap();
        rows.into_iter().filter_map(|row| row.event).collect()
    }

    /// Ends the siege. The honest tenant is served once more, everything that was lent is back, and
    /// the process holds what it held.
    pub(super) async fn over(self) {
        self.serves().await;
        self.rests().await;
        if let Some(before) = self.before.get()
            && let Err(now) = self.holds_no_more_than(before).await
        {
            panic!("{now:?} after {before:?}");
        }
    }
}
