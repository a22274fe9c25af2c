//! The events of a step's effects, in other streams and in the run's own.

use super::Run;
use crate::agents::role::AgentRole;
use crate::events::agent::memory::{OfWhom, of_whom};
use crate::events::event::{
    Event, InputAccepted, ItemRecorded, NoteRemembered, PluginEmitted, PreferencesUpdated,
    RunStarted, Source,
};
use crate::thread::message::{Draft, Role};
use crate::values::id::{InputId, Stream};
use crate::values::limits;
use crate::values::time::Timestamp;
use crate::work::step::Effect;
use serde_json::Value;

/// Returns the events that a step's effects add in other streams and its own, in order. `role` is
/// that of the run's user with the agent. It decides for whom the agent remembers what it learned.
/// `new_input` makes an id for each reminder.
pub fn consequences(
    run: &Run,
    effects: &[Effect],
    role: Option<AgentRole>,
    untrusted: bool,
    time: Timestamp,
    new_input: &mut dyn FnMut() -> InputId,
) -> Vec<(Stream, Event)> {
    let context = EffectContext {
        run,
        role,
        untrusted,
        time,
    };
    effects
        .iter()
        .enumerate()
        .filter_map(|(place, effect)| match effect {
            Effect::Prefer { preferences } => context.preferred(preferences, true),
            Effect::PreferForUser { preferences } => context.preferred(preferences, false),
            Effect::RecordItem { .. } => context.recorded(effect, place),
            Effect::Remember { note } => Some(context.remembered(note)),
            Effect::Emit { name, data } => Some(context.emitted(name, data)),
            Effect::Schedule { after_ms, content } => {
                Some(context.reminder(*after_ms, content, new_input()))
            }
            // Both are part of the step itself.
            _ => None,
        })
        .collect()
}

/// The step whose effects become events.
struct EffectContext<'a> {
    run: &'a Run,
    role: Option<AgentRole>,
    untrusted: bool,
    time: Timestamp,
}

impl EffectContext<'_> {
    /// The change of the agent's preferences; none if content from outside may have requested it. A
    /// step has no way to ask its user first.
    fn preferred(&self, preferences: &Value, for_all: bool) -> Option<(Stream, Event)> {
        if self.untrusted {
            return None;
        }
        let agent = self.run.started.agent;
        let user_id = match of_whom(self.role, for_all)? {
            OfWhom::Everybody => None,
            OfWhom::User => Some(self.run.started.user_id.clone()),
        };
        let updated = PreferencesUpdated {
            agent,
            preferences: preferences.clone(),
            user_id,
            untrusted: self.untrusted,
            updated_at: self.time,
        };
        Some((Stream::Agent(agent), Event::PreferencesUpdated(updated)))
    }

    /// The record of an item; none for other effects.
    fn recorded(&self, effect: &Effect, place: usize) -> Option<(Stream, Event)> {
        let Effect::RecordItem {
            prompt,
            response,
            evaluation,
            asked,
        } = effect
        else {
            return None;
        };
        let run = self.run;
        let session = run.started.session;
        let asked = asked.as_ref().and_then(|key| run.asked.get(key));
        let item = ItemRecorded {
            session,
            item: ItemRecorded::name(run.started.run, run.step, place),
            sequence: None,
            prompt: prompt.clone(),
            response: response.clone(),
            imported: false,
            evaluation: evaluation.clone(),
            client_action: asked.map(|asked| asked.action.clone()),
            asked_at: asked.map(|asked| asked.at),
            answered_at: asked.and_then(|asked| asked.answered_at),
            time: self.time,
        };
        Some((Stream::Session(session), Event::ItemRecorded(item)))
    }

    fn remembered(&self, note: &str) -> (Stream, Event) {
        let agent = self.run.started.agent;
        let note = NoteRemembered {
            agent,
            session: self.run.started.session,
            note: note.to_owned(),
            untrusted: self.untrusted,
            id: None,
            about: None,
            provenance: None,
            time: self.time,
        };
        (Stream::Agent(agent), Event::NoteRemembered(note))
    }

    fn emitted(&self, name: &str, data: &Value) -> (Stream, Event) {
        let emitted = PluginEmitted {
            name: format!("plugin.{}.{name}", self.run.started.definition),
            data: data.clone(),
        };
        (
            Stream::Run(self.run.started.run),
            Event::PluginEmitted(emitted),
        )
    }

    fn reminder(&self, after_ms: u64, content: &str, input: InputId) -> (Stream, Event) {
        let RunStarted {
            depth,
            spawn_depth,
            denies,
            permissions,
            deadline,
            session,
            user_id,
            ..
        } = &self.run.started;
        let source = Source::Reminder {
            due: self.time.plus_ms(after_ms.min(limits::TIMER_MS_MAX)),
            depth: *depth,
            spawn_depth: *spawn_depth,
            hops: self.run.hops,
            denies: denies.clone(),
            permissions: permissions.clone(),
            accounts: self.run.started.accounts(),
            deadline: *deadline,
        };
        let message = Some(Draft {
            untrusted: self.untrusted,
            ..Draft::text(Role::User, "reminder", content)
        });
        let accepted = InputAccepted {
            user_id: user_id.clone(),
            message,
            ..InputAccepted::of(*session, input, source, self.time)
        };
        (Stream::Session(*session), Event::InputAccepted(accepted))
    }
}
