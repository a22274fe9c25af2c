//! System prompts: making one of much, what its sections add to each step of a turn, and what the
//! listing of its items adds to the turn.

use crate::measure::{Pair, in_turns, mean_us};
use crate::report::{Bar, Row};
use agent_host_tests::guests::wasm;
use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use anyhow::{Context, ensure};
use domain::artifact::ArtifactItem;
use domain::authority::{Caller, Denies, Permissions};
use domain::basis::Peer;
use domain::definition::Definition;
use domain::digest::Digest;
use domain::direct_message;
use domain::grant::{Access, BucketGrant, BucketScope, Grant, PatternList};
use domain::panels::{Panel, PanelInventory};
use domain::sections::{Known, SystemBlocks};
use domain::skill::SkillListing;
use domain::tool::{EffectClass, ToolDefinition};
use domain::user::UserId;
use serde_json::json;
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Duration;
use tokio::time::timeout;

/// Tools, skills, peers and items of a prompt of much.
const TOOLS: usize = 200;
const SKILLS: usize = 10;
const PEERS: usize = 50;
const ITEMS: usize = 1_000;
/// Prompts of one measurement.
const PROMPTS: u32 = 50;
/// The bar for making one, in microseconds.
const MAKING_US: f64 = 2_000.0;
/// Turns of one measurement.
const TURNS: u32 = 40;
/// The agent whose prompts have all sections, the one whose prompts have all but the items, and the
/// one whose prompts have none.
const WITH: &str = "with";
const UNLISTED: &str = "unlisted";
const WITHOUT: &str = "without";
/// The agent that adds the items, and how many it adds in a step and in a turn.
const FILLER: &str = "filler";
const ITEMS_OF_STEP: usize = 50;
const ITEMS_OF_TURN: usize = 100;
/// The beginning of the names of a chest's tools, and that of a second chest, of the same length.
const FIRST_CHEST: &[u8] = b"tool_of_the_first_chest";
const OTHER_CHEST: &[u8] = b"tool_of_the_other_chest";
/// Words that are answered at once, and words that are answered after so many steps, each of which
/// calls a tool that does nothing.
const ANSWERED: &str = "hello";
const WORKED_ON: &str = "work";
const STEPS: u32 = 9;
/// The model of all of it.
const SCRIPT: &str = r#"
[[rule]]
when = { last = "tool", results = 9 }
reply.text = "done"

[[rule]]
when.user = "work"
reply.calls = [{ tool = "tool_of_the_first_chest_1" }]

[[rule]]
reply.text = "hello"
"#;
/// Time limit of a turn.
const TURN: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> anyhow::Result<Vec<Row>> {
    let making = Much::new()?.make().await?;
    let world = world().await?;
    fill(&world).await?;
    check(&world).await?;
    let steps = in_turns(
        async || step(&world, WITH).await,
        async || step(&world, WITHOUT).await,
    )
    .await?;
    let listing = in_turns(
        async || turn(&world, WITH, ANSWERED).await,
        async || turn(&world, UNLISTED, ANSWERED).await,
    )
    .await?;
    world.broker.shutdown(Duration::ZERO).await;
    Ok(vec![
        Row::new(
            format!("prompt of {TOOLS} tools, {PEERS} peers, {ITEMS} items / 2 ms"),
            "µs",
            Pair {
                ours: making,
                peer: MAKING_US,
            },
            Bar::AtMost(MAKING_US),
        ),
        Row::new(
            "step whose prompt has all of that / nothing",
            "µs",
            steps,
            Bar::Within(1.1),
        ),
        Row::new(
            format!("turn whose tools list {ITEMS} items / none"),
            "µs",
            listing,
            Bar::Reported,
        ),
    ])
}

/// All that a large prompt tells of, with the lists that are asked about it.
struct Much {
    agent: Definition,
    tools: Vec<ToolDefinition>,
    skills: Vec<SkillListing>,
    peers: Vec<(Peer, Definition)>,
    items: Vec<ArtifactItem>,
    panels: PanelInventory,
}

impl Much {
    fn new() -> anyhow::Result<Self> {
        let agent = json!({
            "agentId": WITH, "displayName": "With",
            "toolAllowlist": ["tool_*", direct_message::MESSAGE], "toolDenylist": ["*_never"],
            "agentAllowlist": ["agent-*"], "agentDenylist": ["*-never"],
        });
        let others = (1..TOOLS).map(|index| tool(&format!("tool_{index}")));
        let peers = (0..PEERS).map(|index| {
            let definition: Definition = serde_json::from_value(other_agent(index))?;
            anyhow::Ok((peer(index), definition))
        });
        Ok(Self {
            agent: serde_json::from_value(agent)?,
            tools: std::iter::once(tool(direct_message::MESSAGE))
                .chain(others)
                .collect(),
            skills: (0..SKILLS).map(skill).collect(),
            peers: peers.collect::<anyhow::Result<_>>()?,
            // In the order in which nothing is in its place yet.
            items: (0..ITEMS).rev().map(item).collect(),
            panels: panels(),
        })
    }

    /// Makes prompts of it; the microseconds of one.
    async fn make(&self) -> anyhow::Result<f64> {
        let whole = self.blocks()?.texts.concat();
        let reported = ["\n- tool_", "(id: ", "\n- agent-"].map(|line| whole.matches(line).count());
        ensure!(
            reported == [TOOLS - 1, ITEMS, PEERS],
            "the prompt is not whole: {reported:?}"
        );
        mean_us(PROMPTS, async || {
            let blocks = self.blocks()?;
            ensure!(blocks.texts.len() == 2, "the prompt is not whole");
            Ok(())
        })
        .await
    }

    /// Makes one as the broker does when a run begins, and as it is stored.
    fn blocks(&self) -> anyhow::Result<SystemBlocks> {
        let denies = Denies::default();
        let permissions = Permissions::default();
        let caller = Caller {
            agent: &self.agent,
            denies: &denies,
            permissions: &permissions,
        };
        let granted = Grant {
            agents: PatternList::everything(),
            ..Grant::default()
        };
        let tools: Vec<&ToolDefinition> = self
            .tools
            .iter()
            .filter(|tool| caller.may_call(*tool).is_ok())
            .collect();
        let peers: Vec<&Peer> = self
            .peers
            .iter()
            .filter(|(_, other)| caller.may_reach(other, &granted).is_ok())
            .map(|(peer, _)| peer)
            .collect();
        let mut items = self.items.clone();
        items.sort();
        let sections = Known {
            tools: &tools,
            skills: &self.skills,
            has_artifacts: true,
            items: &items,
            panels: Some(&self.panels),
            peers: &peers,
            off: &BTreeSet::new(),
        }
        .sections();
        let stored = serde_json::to_vec(&sections)?;
        black_box(Digest::of(&stored));
        Ok(SystemBlocks::default().followed_by(&sections))
    }
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "Does one thing of many, as its name says. Never anything else.".to_owned(),
        arguments: json!({ "type": "object" }),
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

fn peer(index: usize) -> Peer {
    Peer {
        id: format!("agent-{index}"),
        name: format!("Agent {index}"),
        description: "Does one kind of work, as its name says".to_owned(),
    }
}

fn item(index: usize) -> ArtifactItem {
    ArtifactItem {
        item_type: format!("kind-{}", index / 100),
        id: index.to_string(),
        name: format!("A thing that somebody keeps, number {index}"),
    }
}

fn skill(index: usize) -> SkillListing {
    SkillListing {
        id: format!("skill-{index}"),
        description: "Does many things of one kind, as its name says.".to_owned(),
        skill_path: format!("/skills/skill-{index}/SKILL.md"),
        cli_path: Some(format!("/skills/skill-{index}/skill-{index}-cli")),
    }
}

fn panels() -> PanelInventory {
    let panel = |index: usize| Panel {
        panel_id: format!("panel-{index}"),
        panel_type: "artifacts".to_owned(),
        panel_title: Some("Lists".to_owned()),
        context: None,
    };
    PanelInventory {
        panels: (0..4).map(panel).collect(),
        selected_panel_id: Some("panel-1".to_owned()),
        ..PanelInventory::default()
    }
}

fn other_agent(index: usize) -> serde_json::Value {
    json!({
        "agentId": format!("agent-{index}"), "displayName": format!("Agent {index}"),
        "description": "Does one kind of work", "toolAllowlist": [],
    })
}

/// A host with three agents that differ in their prompts alone, with their tools and peers, and
/// with one that fills their list.
async fn world() -> anyhow::Result<World> {
    let off = [
        "tools",
        "skills",
        "artifactItems",
        "messageContext",
        "artifactsPanels",
        "availableAgents",
    ];
    let measured = |id: &str, off: &[&str]| {
        json!({
            "agentId": id, "displayName": id, "uiVisible": false, "promptSectionsOff": off,
            "toolAllowlist": ["tool_of_the_*", "todo_items", direct_message::MESSAGE],
        })
    };
    let filler = json!({
        "agentId": FILLER, "displayName": "Filler", "uiVisible": false, "component": "puppet",
        "toolAllowlist": ["todo_add"],
    });
    let named = [
        measured(WITH, &[]),
        measured(UNLISTED, &["artifactItems"]),
        measured(WITHOUT, &off),
        filler,
    ];
    let world = World::new(Setup {
        script: SCRIPT.to_owned(),
        components: vec!["assistant", "lists", "puppet", "chest"],
        made: vec![("other-chest", other_chest()?)],
        key_value: vec![BucketGrant {
            scope: BucketScope::User,
            ..BucketGrant::new("lists", Access::ReadWrite)
        }],
        definitions: named
            .into_iter()
            .chain((0..PEERS).map(other_agent))
            .collect(),
        ..Setup::default()
    })
    .await;
    Ok(world)
}

/// The built chest with other names for its tools: a component has fewer than a prompt may tell of.
fn other_chest() -> anyhow::Result<Vec<u8>> {
    let mut code = wasm("chest");
    let size = FIRST_CHEST.len();
    let at = code
        .windows(size)
        .position(|bytes| bytes == FIRST_CHEST)
        .context("the names of the chest's tools are not in its program")?;
    drop(code.splice(at..at + size, OTHER_CHEST.iter().copied()));
    Ok(code)
}

/// Puts the items on the todo list, by the tool that is there for it.
async fn fill(world: &World) -> anyhow::Result<()> {
    let session = world.open(FILLER).await;
    for turn in 0..ITEMS / ITEMS_OF_TURN {
        let step = |step: usize| {
            let first = turn * ITEMS_OF_TURN + step * ITEMS_OF_STEP;
            let add = |index: usize| {
                let title = format!("A thing that somebody keeps, number {index}");
                json!({ "key": index.to_string(), "tool": "todo_add", "args": { "title": title } })
            };
            let adds: Vec<_> = (first..first + ITEMS_OF_STEP).map(add).collect();
            json!({ "until": "all", "start": adds })
        };
        let steps: Vec<_> = (0..ITEMS_OF_TURN / ITEMS_OF_STEP).map(step).collect();
        let script = json!({ "steps": steps }).to_string();
        let receipt = world.say(FILLER, session, &script).await;
        let became = world
            .broker
            .messages()
            .await_reply(receipt.input, TURN)
            .await?;
        ensure!(became.is_some(), "the list was not filled in time");
    }
    Ok(())
}

/// Checks that the prompts tell of all that the rows name.
async fn check(world: &World) -> anyhow::Result<()> {
    let user = UserId::local();
    for (agent, tools, items, peers) in [
        (WITH, TOOLS, ITEMS, PEERS),
        (UNLISTED, TOOLS, 0, PEERS),
        (WITHOUT, 0, 0, 0),
    ] {
        let session = world.open(agent).await;
        let parts = world
            .broker
            .agents()
            .prompt(&user, &target(agent), Some(session))
            .await?;
        let lines = |name: &str, line: &str| {
            let part = parts.parts.iter().find(|part| part.name == name);
            part.map_or(0, |part| part.text.matches(line).count())
        };
        let reported = (
            lines("tools", "\n- "),
            lines("artifactItems", "(id: "),
            lines("availableAgents", "\n- "),
        );
        ensure!(
            reported == (tools, items, peers),
            "the prompt of `{agent}` tells of {reported:?} tools, items and peers"
        );
    }
    Ok(())
}

/// Microseconds that a step of a turn takes, its call of a tool included: what a turn of many takes
/// more than one of a single step.
async fn step(world: &World, agent: &str) -> anyhow::Result<f64> {
    let many = turn(world, agent, WORKED_ON).await?;
    let one = turn(world, agent, ANSWERED).await?;
    Ok((many - one) / f64::from(STEPS))
}

/// Microseconds of a turn, from the message to the stored reply.
async fn turn(world: &World, agent: &str, words: &str) -> anyhow::Result<f64> {
    let session = world.open(agent).await;
    let mut durable = world.store().durable();
    mean_us(TURNS, async || {
        let message = world.message(agent, session, words, None);
        world.broker.messages().post(message).await?;
        // Woken by each commit: the broker's own wait looks only every 20 ms.
        let ended = async {
            loop {
                durable.mark_unchanged();
                let row = world.store().session(session).await?;
                if row.is_some_and(|row| row.open_run.is_none() && row.waiting == 0) {
                    return anyhow::Ok(());
                }
                durable.changed().await?;
            }
        };
        timeout(TURN, ended).await.context("no reply in time")?
    })
    .await
}
