//! The random events of a test, and the agent that they happen to.

use serde_json::{Value, json};

/// Numbers that look like chance and are the same for the same seed.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// Any mode with any debounce, cap and policy: mode, debounce, cap, policy.
pub(super) fn grouping(chance: &mut Chance) -> [&'static str; 4] {
    let mode = chance.pick(&[
        "steer",
        "steer",
        "followup",
        "collect",
        "collect",
        "interrupt",
    ]);
    let debounce = chance.pick(&["0", "5ms", "30ms"]);
    let cap = chance.pick(&["2", "3", "20"]);
    [
        mode,
        debounce,
        cap,
        chance.pick(&["new", "old", "summarize"]),
    ]
}

/// Any of what [`grouping`] says, as a directive says it: at least one word.
pub(super) fn part_of(chance: &mut Chance) -> String {
    let [mode, debounce, cap, drop] = grouping(chance);
    let words = [
        mode.to_owned(),
        format!("debounce:{debounce}"),
        format!("cap:{cap}"),
        format!("drop:{drop}"),
    ];
    let which = 1 + chance.below(15);
    words
        .into_iter()
        .enumerate()
        .filter(|(index, _)| which >> index & 1 == 1)
        .map(|(_, word)| word + " ")
        .collect()
}

/// Milliseconds for which the turns of most tests hear no message.
pub(super) const DEAF_MS: u64 = 8;

/// An agent whose turns hear messages while they wait, then wait without hearing any for so many
/// milliseconds, then reply.
pub(super) fn busy(deaf_ms: u64) -> Value {
    let script = json!({ "steps": [
        { "start": [{ "key": "a", "timer": 12 }], "hear": true },
        { "start": [{ "key": "b", "timer": deaf_ms }], "until": "all" },
    ] });
    // Words that arrive at a turn's end make it go on: a limit would end it sooner or later.
    json!({
        "agentId": "busy", "displayName": "Busy", "component": "puppet",
        "limits": { "stepsMax": 100_000 },
        "settings": { "script": script },
    })
}
