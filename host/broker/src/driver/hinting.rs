//! The choice of the notes that the models of a run see in addition to the user's words.
//!
//! It is made once for an opening. A start that waits for a place begins again at each check, and
//! would repeat the search each time.

use super::context::SessionContext;
use crate::shared::DriverError;
use domain::definition::{Definition, HintSettings};
use domain::event::{InputAccepted, Source};
use domain::hints::{Hint, choose};
use domain::id::InputId;
use domain::limits::RECALL_HITS_MAX;
use domain::message::text_of;
use store::SessionRow;

/// The words by which notes are searched.
#[derive(Clone, Copy)]
pub(super) struct ToHint<'a> {
    pub(super) session: &'a SessionRow,
    pub(super) definition: &'a Definition,
    pub(super) inputs: &'a [InputAccepted],
}

/// The hints of an opening.
pub(super) struct Hinted {
    inputs: Vec<InputId>,
    settings: HintSettings,
    hints: Vec<Hint>,
}

impl Hinted {
    /// Returns the hints if they were chosen for these inputs, under these settings.
    fn again(&self, inputs: &[InputId], settings: HintSettings) -> Option<Vec<Hint>> {
        (self.inputs == inputs && self.settings == settings).then(|| self.hints.clone())
    }
}

impl SessionContext {
    /// Returns the hints of an opening, if its definition asks for any: those that were chosen
    /// before for the same inputs, or the best notes from the sessions of the session's user.
    ///
    /// A role that shows everybody's sessions does not count here. No user requests these notes, so
    /// one user's words would appear in another's conversation. A session with several speakers
    /// gets no hints.
    pub(super) async fn hints(
        &self,
        to_hint: ToHint<'_>,
        before: &mut Option<Hinted>,
    ) -> Result<Vec<Hint>, DriverError> {
        let Some(settings) = to_hint.definition.memory_hints else {
            *before = None;
            return Ok(Vec::new());
        };
        let inputs: Vec<InputId> = to_hint.inputs.iter().map(|input| input.input).collect();
        if let Some(hints) = before.as_ref().and_then(|it| it.again(&inputs, settings)) {
            return Ok(hints);
        }
        let hints = self.best_notes(to_hint, settings).await?;
        *before = Some(Hinted {
            inputs,
            settings,
            hints: hints.clone(),
        });
        Ok(hints)
    }

    async fn best_notes(
        &self,
        to_hint: ToHint<'_>,
        settings: HintSettings,
    ) -> Result<Vec<Hint>, DriverError> {
        let ToHint {
            session, inputs, ..
        } = to_hint;
        let user = &session.user_id;
        if inputs.iter().any(|input| input.user_id != *user) {
            return Ok(Vec::new());
        }
        let words: Vec<String> = inputs
            .iter()
            .filter(|input| matches!(input.source, Source::Api))
            .filter_map(|input| input.message.as_ref())
            .map(|message| text_of(&message.parts))
            .collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let found = self
            .store()
            .recall_notes(session.agent, Some(user), &words.join(" "), RECALL_HITS_MAX)
            .await?;
        let hints = found.iter().filter_map(|hit| {
            Some(Hint {
                note: hit.note?,
                bytes: hit.text.len() as u64,
                untrusted: hit.untrusted,
            })
        });
        Ok(choose(settings, hints))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::fresh;
    use domain::id::NoteId;

    #[test]
    fn hints_are_taken_again_for_the_same_inputs_and_settings_alone() {
        let input = fresh::input();
        let settings = HintSettings::default();
        let hint = Hint {
            note: NoteId::of_position(fresh::agent(), 1),
            bytes: 9,
            untrusted: false,
        };
        let hinted = Hinted {
            inputs: vec![input],
            settings,
            hints: vec![hint],
        };
        assert_eq!(hinted.again(&[input], settings), Some(vec![hint]));
        assert_eq!(hinted.again(&[input, fresh::input()], settings), None);
        let fewer = HintSettings {
            max: settings.max - 1,
            ..settings
        };
        assert_eq!(hinted.again(&[input], fewer), None);
    }
}
