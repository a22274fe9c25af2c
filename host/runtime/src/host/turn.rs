//! `turn`: the view of a step. Every question and its answer go into a running hash, which tells
//! where a replay diverges.

pub(crate) mod step_view;

use crate::bindings::agent::agent_host::plugin::turn;
use crate::bindings::agent::agent_host::plugin::types::{Message, ToolDefinition};
use crate::call::{CallState, Purpose};
use crate::convert::{guest_message, guest_tool};
use crate::view::{View, ViewStatic};
use domain::basis::{LimitsLeft, Peer};
use domain::digest::Digest;
use domain::message::MessageId;
use domain::time::Timestamp;
use std::sync::Arc;
use step_view::ViewHandle;
use wasmtime::component::Resource;

/// Bytes of a blob that a guest gets at once.
const BLOB_READ_BYTES_MAX: u32 = 1 << 20;

impl CallState {
    fn text(
        &mut self,
        question: &str,
        field: impl FnOnce(&ViewStatic) -> &String,
    ) -> wasmtime::Result<String> {
        let step = self.step()?;
        let text = field(step.basis_static()).clone();
        step.record_answer(question, &[text.as_bytes()]);
        Ok(text)
    }

    fn view(&mut self) -> wasmtime::Result<Arc<dyn View>> {
        Ok(self.step()?.view.clone())
    }

    /// The hash over what the step has read; that of nothing for other calls.
    pub(crate) fn answers(&self) -> Digest {
        match &self.purpose {
            Purpose::Step(view) => view.answers(),
            Purpose::Describe | Purpose::Tool(_) | Purpose::Fire | Purpose::Connect(_) => {
                Digest::of(&[])
            }
        }
    }
}

type View_ = Resource<ViewHandle>;

impl turn::Host for CallState {}

/// Questions of an agent whose answers are fixed texts of its view.
macro_rules! texts {
    ($($name:ident = $question:literal;)*) => {$(
        fn $name(&mut self, _view: View_) -> wasmtime::Result<String> {
            self.text($question, |fixed| &fixed.$name)
        }
    )*};
}

impl turn::HostView for CallState {
    texts! {
        agent_id = "agent-id";
        path = "path";
        user = "user";
        session_type = "session-type";
        settings = "settings";
        preferences = "preferences";
        shared_preferences = "shared-preferences";
        session_config = "session-config";
        history = "history";
        session_state = "session-state";
    }

    fn now_ms(&mut self, _view: View_) -> wasmtime::Result<u64> {
        let step = self.step()?;
        let Timestamp(now) = step.now;
        step.record_answer("now-ms", &[&now.to_be_bytes()]);
        Ok(now)
    }

    fn left(&mut self, _view: View_) -> wasmtime::Result<turn::LimitsLeft> {
        let step = self.step()?;
        let LimitsLeft {
            steps,
            tool_calls,
            tokens,
        } = step.left;
        step.record_answer(
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

    fn head(&mut self, _view: View_) -> wasmtime::Result<Option<MessageId>> {
        let step = self.step()?;
        let head = step.basis_static().head;
        step.record_answer("head", &[&head.unwrap_or_default().to_be_bytes()]);
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
            .record_answer("message", &[&id.to_be_bytes(), answer]);
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
        self.step()?.record_answer(
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
        let tools = step.basis_static().tools.iter();
        let names: Vec<String> = tools.map(|tool| tool.name.clone()).collect();
        let answer: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        step.record_answer("tool-names", &answer);
        Ok(names)
    }

    fn tool(&mut self, _view: View_, name: String) -> wasmtime::Result<Option<ToolDefinition>> {
        let step = self.step()?;
        let mut tools = step.basis_static().tools.iter();
        let found = tools.find(|tool| tool.name == name);
        let tool = found.map(guest_tool);
        let answer = found.map(serde_json::to_vec).transpose()?;
        let answer = answer.unwrap_or_default();
        step.record_answer("tool", &[name.as_bytes(), &answer]);
        Ok(tool)
    }

    fn peers(&mut self, _view: View_) -> wasmtime::Result<Vec<turn::Peer>> {
        let step = self.step()?;
        let guest_peer = |peer: &Peer| turn::Peer {
            id: peer.id.clone(),
            name: peer.name.clone(),
            description: peer.description.clone(),
        };
        let peers = step.basis_static().peers.iter().map(guest_peer);
        let peers: Vec<turn::Peer> = peers.collect();
        let answer: Vec<&[u8]> = peers
            .iter()
            .flat_map(|peer| [&peer.id, &peer.name, &peer.description])
            .map(String::as_bytes)
            .collect();
        step.record_answer("peers", &answer);
        Ok(peers)
    }

    fn memo(&mut self, _view: View_) -> wasmtime::Result<Option<turn::Memo>> {
        let step = self.step()?;
        let memo = step.basis_static().memo.as_ref().map(|memo| turn::Memo {
            format: memo.format,
            bytes: memo.bytes.clone(),
        });
        match &memo {
            Some(memo) => step.record_answer("memo", &[&memo.format.to_be_bytes(), &memo.bytes]),
            None => step.record_answer("memo", &[]),
        }
        Ok(memo)
    }

    fn drop(&mut self, _view: View_) -> wasmtime::Result<()> {
        Ok(())
    }
}
