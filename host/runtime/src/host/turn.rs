//! `turn`: the view of a step. Every question and its answer go into a running hash, which tells
//! where a replay diverges.

use crate::bindings::agent::agent_host::plugin::turn;
use crate::bindings::agent::agent_host::plugin::types::{Message, ToolDefinition};
use crate::call::{CallState, Purpose};
use crate::convert::view::{guest_message, guest_tool};
use crate::view::{View, ViewStatic};
use domain::basis::{Basis, LimitsLeft};
use domain::digest::Digest;
use domain::message::MessageId;
use domain::time::Timestamp;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use wasmtime::component::Resource;

/// Bytes of a blob that a guest gets at once.
const BLOB_READ_BYTES_MAX: u32 = 1 << 20;

/// The guest's handle of its view. There is one view in a step, so the handle says nothing.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub struct ViewHandle;

/// The view of one step, and the hash over what was read of it.
pub(crate) struct StepView {
    view: Arc<dyn View>,
    now: Timestamp,
    left: LimitsLeft,
    answers: Sha256,
}

impl StepView {
    pub(crate) fn new(view: Arc<dyn View>, basis: &Basis) -> Self {
        Self {
            view,
            now: basis.now,
            left: basis.left,
            answers: Sha256::new(),
        }
    }

    /// The hash over everything that was read so far.
    pub(crate) fn answers(&self) -> Digest {
        Digest(self.answers.clone().finalize().into())
    }

    fn fixed(&self) -> &ViewStatic {
        self.view.basis_static()
    }

    /// Takes a question and its answer into the hash. Each piece's length goes in first, so no two
    /// sequences look the same.
    fn answered(&mut self, question: &str, answer: &[&[u8]]) {
        for piece in std::iter::once(&question.as_bytes()).chain(answer) {
            self.answers.update((piece.len() as u64).to_be_bytes());
            self.answers.update(piece);
        }
    }
}

impl CallState {
    /// A text of the view.
    fn text(
        &mut self,
        question: &str,
        of: impl FnOnce(&ViewStatic) -> &String,
    ) -> wasmtime::Result<String> {
        let step = self.step()?;
        let text = of(step.fixed()).clone();
        step.answered(question, &[text.as_bytes()]);
        Ok(text)
    }

    fn view(&mut self) -> wasmtime::Result<Arc<dyn View>> {
        Ok(self.step()?.view.clone())
    }
}

type View_ = Resource<ViewHandle>;

impl turn::Host for CallState {}

impl turn::HostView for CallState {
    fn agent_id(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("agent-id", |fixed| &fixed.agent_id)
    }

    fn path(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("path", |fixed| &fixed.path)
    }

    fn user(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("user", |fixed| &fixed.user)
    }

    fn session_type(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("session-type", |fixed| &fixed.session_type)
    }

    fn now_ms(&mut self, _view: View_) -> wasmtime::Result<u64> {
        let step = self.step()?;
        let Timestamp(now) = step.now;
        step.answered("now-ms", &[&now.to_be_bytes()]);
        Ok(now)
    }

    fn left(&mut self, _view: View_) -> wasmtime::Result<turn::LimitsLeft> {
        let step = self.step()?;
        let LimitsLeft {
            steps,
            tool_calls,
            tokens,
        } = step.left;
        step.answered(
            "left",
            &[
                &steps.to_be_bytes(),
                &tool_calls.to_be_bytes(),
                &tokens.to_be_bytes(),
            ],
        );
        Ok(turn::LimitsLeft {
            steps,
            tool_calls,
            tokens,
        })
    }

    fn settings(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("settings", |fixed| &fixed.settings)
    }

    fn preferences(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("preferences", |fixed| &fixed.preferences)
    }

    fn shared_preferences(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("shared-preferences", |fixed| &fixed.shared_preferences)
    }

    fn session_config(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("session-config", |fixed| &fixed.session_config)
    }

    fn history(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("history", |fixed| &fixed.history)
    }

    fn session_state(&mut self, _view: View_) -> wasmtime::Result<String> {
        self.text("session-state", |fixed| &fixed.session_state)
    }

    fn head(&mut self, _view: View_) -> wasmtime::Result<Option<MessageId>> {
        let step = self.step()?;
        let head = step.fixed().head;
        step.answered("head", &[&head.unwrap_or_default().to_be_bytes()]);
        Ok(head)
    }

    async fn message(&mut self, _view: View_, id: MessageId) -> wasmtime::Result<Option<Message>> {
        let message = match self.view()?.message(id).await {
            Ok(message) => message,
            Err(error) => return Err(self.faulted(&error)),
        };
        // The message's own digest is salted and covers all that a guest sees of it but its place.
        let digest = message.as_ref().map(domain::message::Message::digest);
        let answer = digest.as_ref().map_or(&[][..], |digest| &digest.0);
        self.step()?
            .answered("message", &[&id.to_be_bytes(), answer]);
        Ok(message.map(guest_message))
    }

    async fn read_blob(
        &mut self,
        _view: View_,
        blob: String,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Option<Vec<u8>>> {
        let length = length.min(BLOB_READ_BYTES_MAX);
        let bytes = match Digest::from_reference(&blob) {
            None => None,
            Some(digest) => match self.view()?.read_blob(digest, offset, length).await {
                Ok(bytes) => bytes,
                Err(error) => return Err(self.faulted(&error)),
            },
        };
        let answer = bytes.as_deref().unwrap_or_default();
        let there = [u8::from(bytes.is_some())];
        self.step()?.answered(
            "read-blob",
            &[
                blob.as_bytes(),
                &offset.to_be_bytes(),
                &length.to_be_bytes(),
                &there,
                answer,
            ],
        );
        Ok(bytes)
    }

    fn tool_names(&mut self, _view: View_) -> wasmtime::Result<Vec<String>> {
        let step = self.step()?;
        let names: Vec<String> = step
            .fixed()
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        let answer: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        step.answered("tool-names", &answer);
        Ok(names)
    }

    fn tool(&mut self, _view: View_, name: String) -> wasmtime::Result<Option<ToolDefinition>> {
        let step = self.step()?;
        let found = step.fixed().tools.iter().find(|tool| tool.name == name);
        let (tool, answer) = match found {
            Some(tool) => (Some(guest_tool(tool)), serde_json::to_vec(tool)?),
            None => (None, Vec::new()),
        };
        step.answered("tool", &[name.as_bytes(), &answer]);
        Ok(tool)
    }

    fn peers(&mut self, _view: View_) -> wasmtime::Result<Vec<turn::Peer>> {
        let step = self.step()?;
        let peers: Vec<turn::Peer> = step
            .fixed()
            .peers
            .iter()
            .map(|peer| turn::Peer {
                id: peer.id.clone(),
                name: peer.name.clone(),
                description: peer.description.clone(),
            })
            .collect();
        let answer: Vec<&[u8]> = peers
            .iter()
            .flat_map(|peer| {
                [
                    peer.id.as_bytes(),
                    peer.name.as_bytes(),
                    peer.description.as_bytes(),
                ]
            })
            .collect();
        step.answered("peers", &answer);
        Ok(peers)
    }

    fn memo(&mut self, _view: View_) -> wasmtime::Result<Option<turn::Memo>> {
        let step = self.step()?;
        let memo = step.fixed().memo.as_ref().map(|memo| turn::Memo {
            format: memo.format,
            bytes: memo.bytes.clone(),
        });
        match &memo {
            Some(memo) => step.answered("memo", &[&memo.format.to_be_bytes(), &memo.bytes]),
            None => step.answered("memo", &[]),
        }
        Ok(memo)
    }

    fn drop(&mut self, _view: View_) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl CallState {
    /// The hash over what the step has read; that of nothing for other calls.
    pub(crate) fn answers(&self) -> Digest {
        match &self.purpose {
            Purpose::Step(view) => view.answers(),
            Purpose::Describe | Purpose::Tool(_) => Digest::of(&[]),
        }
    }
}
