//! Command lines over an agent's skills. A line is executed again from its start, up to the first
//! call without a result.

use crate::computing::Computes;
use crate::core::Core;
use crate::performance::lines::Line;
use crate::performance::result::{Performed, WorkOutcome};
use domain::event::RunStarted;
use domain::message::Part;
use domain::operation::Called;
use domain::run::Open;
use domain::run::settle::Ended;
use domain::skill::SkillSet;
use domain::step::{Failure, OperationOutcome};
use shell::{Answered, LineOutcome};
use std::sync::Arc;

/// Maximum bytes of a call's result that a line gets; the rest is left out.
const RESULT_BYTES_MAX: usize = 512 << 10;

/// One segment of a command line: up to its end, or to the next call that it needs.
pub(crate) struct Command<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) started: &'a RunStarted,
    pub(crate) open: &'a Open,
    pub(crate) command: &'a str,
    pub(crate) computes: &'a Computes,
}

impl Command<'_> {
    pub(crate) async fn perform(self) -> Performed {
        let skills = match self.skills().await {
            Ok(skills) => skills,
            Err(failure) => return Performed::ended(Ended::Failed(failure)),
        };
        let mut answered = Vec::new();
        for called in &self.open.called {
            match self.answered(called).await {
                Ok(one) => answered.push(one),
                Err(failure) => return Performed::ended(Ended::Failed(failure)),
            }
        }
        let untrusted = self.open.called.iter().any(|called| called.untrusted);
        let line = Line {
            command: self.command.to_owned(),
            skills,
            answered,
        };
        match line
            .carried_out(self.core, self.started, self.computes)
            .await
        {
            Ok(LineOutcome::Call(wanted)) => Performed::finished(WorkOutcome::Call(wanted)),
            Ok(LineOutcome::Done(shown)) => Performed::ended(Ended::Gave {
                parts: vec![Part::text(shown)],
                untrusted,
            }),
            Err(failure) => Performed::ended(Ended::Failed(failure)),
        }
    }

    /// Returns the skills that the run began with, as far as its agent may still have them.
    async fn skills(&self) -> Result<SkillSet, Failure> {
        let core = self.core;
        let began_with = core.serving.config_of_run(&core.store, self.started).await;
        let config = began_with.map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the skills of a turn could not be read"
            );
            Failure::passing("unavailable", "the skills of this turn could not be read")
        })?;
        let gone =
            || Failure::lasting("not-found", "the skills that this turn began with are gone");
        let skills = config.ok_or_else(gone)?.skills.clone();
        let served = core.served();
        let definition = served.catalogue.definition(&self.started.definition);
        Ok(definition.map_or_else(SkillSet::default, |it| skills.left_by(it)))
    }

    /// Returns the result of a call as the line reads it.
    async fn answered(&self, called: &Called) -> Result<Answered, Failure> {
        let text = match &called.outcome {
            OperationOutcome::Parts { parts } => Ok(self.text_of(parts).await?),
            OperationOutcome::Value { value } => Ok(value.to_string()),
            OperationOutcome::Message { .. } | OperationOutcome::Elapsed => Ok(String::new()),
            outcome => Err(outcome.complaint().unwrap_or_default()),
        };
        let failed = text.is_err();
        Ok(Answered {
            tool: called.tool.clone(),
            arguments: called.arguments.clone(),
            text: text.unwrap_or_else(|why| why),
            failed,
        })
    }

    /// Returns the text of a result. One that was too long for an event is read from its blob.
    async fn text_of(&self, parts: &[Part]) -> Result<String, Failure> {
        let mut text = String::new();
        let whole = parts.iter().find_map(|part| match part {
            Part::Blob {
                digest, media_type, ..
            } if media_type == "text/plain" || media_type == "application/json" => Some(*digest),
            _ => None,
        });
        if let Some(digest) = whole {
            let read = self.core.store.blob(digest).await.map_err(|error| {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the result of a call could not be read"
                );
                Failure::passing("unavailable", "the result of a call could not be read")
            })?;
            if let Some(bytes) = read {
                text = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        if text.is_empty() {
            for part in parts {
                match part {
                    Part::Text { text: chunk } => text.push_str(chunk),
                    Part::Blob { digest, .. } => {
                        text.push_str(&format!("[{}]", digest.reference()));
                    }
                    Part::Call { .. } | Part::Opaque { .. } => {}
                }
            }
        }
        text.truncate(text.floor_char_boundary(RESULT_BYTES_MAX));
        Ok(text)
    }
}
