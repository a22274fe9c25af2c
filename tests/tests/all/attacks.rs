//! The attacks: hostile guests, servers, models, clients and configurations, and what becomes of
//! the host under each of them.
//!
//! A guest's attack and its test have one name. The lists of those names are in the programs
//! (`hostile` for tools, `rogue` for agents) and, for what Rust cannot express, in `wat`; here they
//! become references of the tests, so that a hostile program without a test does not compile.
//! `docs/attacks.md` says which attack is proved where.

#[macro_use]
#[path = "../../programs/hostile/src/attacks.rs"]
mod tools;
#[macro_use]
#[path = "../../programs/rogue/src/attacks.rs"]
mod agents;

/// One case: the attack, whose name is the test's, and the message to the caller.
macro_rules! case {
    ($attack:ident, $reported:expr) => {{
        let _: fn() = $attack;
        super::siege::Case::of(stringify!($attack), $reported)
    }};
}

/// Tests of attacks, each with the message to the caller and what else its case has.
macro_rules! cases {
    ($(#[test] fn $attack:ident($reported:expr) $(.$step:ident($($given:expr),*))*;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        pub(super) async fn $attack() {
            case!($attack, $reported)$(.$step($($given),*))*.prove().await;
        }
    )*};
}

/// Fails to compile when an attack has no test.
macro_rules! proved {
    ($($family:ident { $($attack:ident)* })*) => {
        $($(const _: fn() = $family::$attack;)*)*
    };
}

mod authority;
mod client;
mod config;
mod cpu;
mod escape;
mod folders;
mod injection;
mod memory;
mod network;
mod secrets;
mod siege;
mod wat;

foreach_tool_attack!(proved);
foreach_agent_attack!(proved);
