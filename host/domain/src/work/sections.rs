//! Sections of a system prompt: the host's description of the model's tools, skills, artifacts and
//! peers. They follow the base, which says who the agent is.
//!
//! Sections inform and grant nothing: every call is checked against the lists and grants, whatever
//! a section says. They are made when a run begins, and are the same in all its model calls. An
//! empty section is left out. Text that changes from run to run is in a separate block after
//! constant text, so that a provider can cache the beginning of the prompt.

mod text;

pub use text::{ITEMS_SHOWN_MAX, SHORT_CHARS_MAX};

use crate::access::artifact::ArtifactItem;
use crate::access::tool::ToolDefinition;
use crate::agents::prompt_section::SectionName;
use crate::agents::skill::SkillListing;
use crate::thread::compaction::text_tokens;
use crate::thread::speaker::EXPLAINED;
use crate::values::digest::Digest;
use crate::work::basis::Peer;
use crate::work::direct_message;
use crate::work::panels::{Panel, PanelInventory};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A section of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: SectionName,
    /// The text that a model sees.
    pub text: String,
}

impl Section {
    /// Returns the estimated number of its tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        text_tokens(self.text.len())
    }
}

/// The sections of a run's prompts, as its start names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenSections {
    /// The sections, a blob: a JSON array of [`Section`].
    pub digest: Digest,
    /// Bytes of their texts together.
    pub bytes: u64,
}

/// The facts from which the sections of one run are made.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The tools of the run, in the order in which its models see them.
    pub tools: &'a [&'a ToolDefinition],
    /// The skills that its agent may use.
    pub skills: &'a [SkillListing],
    /// True if some of its tools store items that people see, even if there are none yet.
    pub has_artifacts: bool,
    /// The items that its tools list, in order.
    pub items: &'a [ArtifactItem],
    /// The panels that a client shows beside its session.
    pub panels: Option<&'a PanelInventory>,
    /// The agents that it may send messages to.
    pub peers: &'a [&'a Peer],
    /// The sections that its definition switches off.
    pub off: &'a BTreeSet<SectionName>,
}

impl Known<'_> {
    /// Returns the sections in order, without disabled and empty ones.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        SectionName::ALL
            .into_iter()
            .filter(|name| !self.off.contains(name))
            .filter_map(|name| self.text(name).map(|text| Section { name, text }))
            .collect()
    }

    /// Returns whether the sections contain text that others may have written: the names of items,
    /// the title of a panel, or its active content.
    #[must_use]
    pub fn are_untrusted(&self) -> bool {
        let is_on = |name| !self.off.contains(&name);
        let has_items = is_on(SectionName::ArtifactItems) && !self.items.is_empty();
        let is_named = |panel: &Panel| panel.panel_title.is_some() || panel.context.is_some();
        let has_names = is_on(SectionName::ArtifactsPanels)
            && self
                .panels_shown()
                .is_some_and(|inventory| inventory.panels.iter().any(is_named));
        has_items || has_names
    }

    fn panels_shown(&self) -> Option<&PanelInventory> {
        self.panels.filter(|_| self.has_artifacts)
    }

    fn text(&self, name: SectionName) -> Option<String> {
        match name {
            SectionName::Tools => text::tools(self.tools),
            SectionName::Skills => text::skills(self.skills),
            SectionName::ArtifactItems => text::items(self.items),
            SectionName::MessageContext => {
                self.has_artifacts.then(|| text::MESSAGE_CONTEXT.to_owned())
            }
            SectionName::ArtifactsPanels => self.panels_shown().and_then(text::panels),
            SectionName::AvailableAgents => {
                let may_send = self
                    .tools
                    .iter()
                    .any(|tool| tool.name == direct_message::MESSAGE);
                may_send.then(|| text::agents(self.peers)).flatten()
            }
        }
    }
}

/// A system prompt in blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemBlocks {
    /// The blocks, those that change most often last.
    pub texts: Vec<String>,
    /// Number of blocks at the beginning that are the same in every run.
    pub stable: usize,
}

impl SystemBlocks {
    /// The blocks of the agent's own code. Of several, the last is assumed to change.
    #[must_use]
    pub fn of_agent(texts: Vec<String>) -> Self {
        let stable = texts.len().min(1).max(texts.len().saturating_sub(1));
        Self { texts, stable }
    }

    /// Returns the blocks with an explanation of speakers' blocks, in the constant part, if such
    /// blocks are possible.
    #[must_use]
    pub fn explaining(mut self, has_blocks: bool) -> Self {
        if !has_blocks {
            return self;
        }
        match self.texts.first_mut() {
            Some(text) => {
                text.push_str("\n\n");
                text.push_str(EXPLAINED);
            }
            None => self.texts.push(EXPLAINED.to_owned()),
        }
        self.stable = self.stable.max(1);
        self
    }

    /// Returns the blocks followed by the sections of the run. Those before the first that changes
    /// from run to run form one block, the others another.
    #[must_use]
    pub fn followed_by(mut self, sections: &[Section]) -> Self {
        let volatile = sections
            .iter()
            .position(|section| section.name.is_volatile())
            .unwrap_or(sections.len());
        let (stable, rest) = sections.split_at(volatile);
        if !stable.is_empty() {
            self.texts.push(joined(stable));
        }
        // The sections after them change, so the agent's own blocks do not.
        if !sections.is_empty() {
            self.stable = self.texts.len();
        }
        if !rest.is_empty() {
            self.texts.push(joined(rest));
        }
        self
    }
}

fn joined(sections: &[Section]) -> String {
    let texts: Vec<&str> = sections
        .iter()
        .map(|section| section.text.as_str())
        .collect();
    texts.join("\n\n")
}

/// Returns the bytes of the texts of some sections.
#[must_use]
pub fn bytes(sections: &[Section]) -> u64 {
    sections
        .iter()
        .map(|section| section.text.len() as u64)
        .sum()
}

#[cfg(test)]
mod tests;
