//! The conversion of an agent's step for the host, checked against every limit on the way.

use crate::bindings::agent::agent_host::plugin::turn;
use crate::bindings::agent::exports::agent_host::plugin::agent;
use crate::convert::{Read, Reader, check_count, check_length, milliseconds, same, unacceptable};
use domain::limits::{
    EFFECTS_MAX, KEY_BYTES_MAX, MEMO_BYTES_MAX, RECALL_HITS_MAX, SESSION_STATE_BYTES_MAX,
};
use domain::sampling::Sampling;
use domain::step::{
    Audience, Call, Context, Decision, Dispatch, Effect, Memo, ModelRequest, Request, StepResult,
    Toolset, Until, Wait, Work,
};
use serde_json::Value;
use shapes::is_name;

/// Bytes of the data of an agent's own event.
const OWN_EVENT_BYTES_MAX: usize = 64 << 10;

/// Reads what a step returned.
pub(crate) fn step_result(result: agent::StepResult) -> Read<StepResult> {
    let agent::StepResult {
        decision,
        effects,
        memo,
    } = result;
    let mut reader = Reader::default();
    check_count("effects", effects.len(), EFFECTS_MAX)?;
    Ok(StepResult {
        decision: reader.decision(decision)?,
        effects: reader.each("effects", effects, Reader::effect)?,
        memo: memo.map(|memo| reader.memo(memo)).transpose()?,
    })
}

impl Reader {
    fn memo(&mut self, memo: turn::Memo) -> Read<Memo> {
        let turn::Memo { format, bytes } = memo;
        let bytes = self.bytes("memo.bytes", bytes, MEMO_BYTES_MAX)?;
        Ok(Memo { format, bytes })
    }

    fn decision(&mut self, decision: agent::Decision) -> Read<Decision> {
        Ok(match decision {
            agent::Decision::Wait(wait) => Decision::Wait(self.wait(wait)?),
            agent::Decision::Reply(parts) => Decision::Reply {
                parts: self.parts("decision.reply", parts)?,
            },
            agent::Decision::Complete(summary) => Decision::Complete {
                summary: self.json("decision.complete", &summary)?,
            },
            agent::Decision::Fail(reason) => Decision::Fail {
                reason: self.text("decision.fail", reason)?,
            },
        })
    }

    fn wait(&mut self, wait: agent::Wait) -> Read<Wait> {
        let agent::Wait {
            start,
            cancel,
            until,
            hear,
        } = wait;
        Ok(Wait {
            start: self.each("decision.wait.start", start, Self::operation)?,
            cancel: self.each("decision.wait.cancel", cancel, Self::key)?,
            until: same!(until, agent::Until => Until: Any, All),
            hear,
        })
    }

    fn key(&mut self, field: &str, key: String) -> Read<String> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return unacceptable(
                field,
                format_args!("is {} bytes long; 1 to {KEY_BYTES_MAX}", key.len()),
            );
        }
        self.text(field, key)
    }

    fn operation(&mut self, field: &str, operation: agent::Operation) -> Read<Request> {
        let agent::Operation { key, work } = operation;
        let key = self.key(&format!("{field}.key"), key)?;
        let field = format!("{field}.work");
        let work = match work {
            agent::Work::Model(request) => Work::Model(self.model_request(&field, request)?),
            agent::Work::Tool(call) => Work::Tool {
                call: self.call(&field, call)?,
            },
            agent::Work::Client(action) => Work::Client(self.client_action(&field, action)?),
            agent::Work::Agent(dispatch) => Work::Agent(self.dispatch(&field, dispatch)?),
            agent::Work::Recall(agent::Recall { query, limit }) => {
                if limit > RECALL_HITS_MAX {
                    return unacceptable(
                        &format!("{field}.limit"),
                        format_args!("is {limit}; {RECALL_HITS_MAX} at most"),
                    );
                }
                Work::Recall {
                    query: self.text(&field, query)?,
                    limit,
                }
            }
            agent::Work::TimerMs(ms) => Work::Timer {
                ms: milliseconds(&field, ms)?,
            },
        };
        Ok(Request { key, work })
    }

    fn model_request(&mut self, field: &str, request: agent::ModelRequest) -> Read<ModelRequest> {
        let agent::ModelRequest {
            system,
            context,
            also,
            tools,
            model,
            max_tokens,
            reply_schema,
            audience,
        } = request;
        for block in &system {
            self.count(&format!("{field}.system"), block.len())?;
        }
        let tools = match tools {
            agent::Toolset::All => Toolset::All,
            agent::Toolset::Named(names) => {
                for name in &names {
                    self.count(&format!("{field}.tools"), name.len())?;
                }
                Toolset::Named(names)
            }
            agent::Toolset::None => Toolset::None,
        };
        Ok(ModelRequest {
            system,
            context: match context {
                agent::Context::Whole => Context::Whole,
                agent::Context::Since(message) => Context::Since(message),
            },
            also: self.parts(&format!("{field}.also"), also)?,
            tools,
            model: model
                .map(|model| self.text(&format!("{field}.model"), model))
                .transpose()?,
            max_tokens,
            reply_schema: reply_schema
                .map(|schema| self.schema(&format!("{field}.reply-schema"), &schema))
                .transpose()?,
            audience: same!(audience, agent::Audience => Audience: User, Hidden),
            sampling: Sampling::default(),
        })
    }

    fn call(&mut self, field: &str, call: agent::Call) -> Read<Call> {
        Ok(match call {
            agent::Call::OfModel(agent::ModelCallPlace { message, index }) => {
                Call::OfModel { message, index }
            }
            agent::Call::Own(agent::OwnCall { name, arguments }) => {
                // Kept as the guest wrote it: its performer validates it against the schema.
                self.object(&format!("{field}.arguments"), &arguments)?;
                Call::Own {
                    name: self.text(&format!("{field}.name"), name)?,
                    arguments,
                }
            }
        })
    }

    fn dispatch(&mut self, field: &str, dispatch: agent::Dispatch) -> Read<Dispatch> {
        let agent::Dispatch {
            target,
            content,
            detached,
            timeout_ms,
        } = dispatch;
        let timeout_ms = timeout_ms
            .map(|ms| milliseconds(&format!("{field}.timeout-ms"), ms))
            .transpose()?;
        Ok(Dispatch {
            target: self.text(&format!("{field}.target"), target)?,
            content: self.parts(&format!("{field}.content"), content)?,
            detached,
            timeout_ms,
        })
    }

    fn effect(&mut self, field: &str, effect: agent::Effect) -> Read<Effect> {
        Ok(match effect {
            agent::Effect::Say(parts) => Effect::Say {
                parts: self.parts(field, parts)?,
            },
            agent::Effect::Prefer(preferences) => Effect::Prefer {
                preferences: self.object(field, &preferences)?,
            },
            agent::Effect::PreferForUser(preferences) => Effect::PreferForUser {
                preferences: self.object(field, &preferences)?,
            },
            agent::Effect::RecordItem(agent::Item {
                prompt,
                response,
                evaluation,
                asked,
            }) => Effect::RecordItem {
                prompt: self.json(&format!("{field}.prompt"), &prompt)?,
                response: self.json(&format!("{field}.response"), &response)?,
                evaluation: evaluation
                    .map(|evaluation| self.json(&format!("{field}.evaluation"), &evaluation))
                    .transpose()?,
                asked: asked
                    .map(|asked| self.text(&format!("{field}.asked"), asked))
                    .transpose()?,
            },
            agent::Effect::SessionState(state) => Effect::SessionState {
                state: self.session_state(field, &state)?,
            },
            agent::Effect::Remember(note) => Effect::Remember {
                note: self.text(field, note)?,
            },
            agent::Effect::Emit(event) => self.own_event(field, event)?,
            agent::Effect::Schedule(agent::Reminder { after_ms, content }) => Effect::Schedule {
                after_ms: milliseconds(&format!("{field}.after-ms"), after_ms)?,
                content: self.text(field, content)?,
            },
        })
    }

    fn session_state(&mut self, field: &str, state: &str) -> Read<Value> {
        check_length(field, state.len(), SESSION_STATE_BYTES_MAX)?;
        self.json(field, state)
    }

    fn own_event(&mut self, field: &str, event: agent::OwnEvent) -> Read<Effect> {
        let agent::OwnEvent { name, data } = event;
        if !is_name(&name, b".-") {
            return unacceptable(
                &format!("{field}.name"),
                "is not 1 to 64 of `a-z`, `0-9`, `.` and `-`",
            );
        }
        let field = format!("{field}.data");
        check_length(&field, data.len(), OWN_EVENT_BYTES_MAX)?;
        Ok(Effect::Emit {
            data: self.object(&field, &data)?,
            name,
        })
    }
}

#[cfg(test)]
mod tests;
