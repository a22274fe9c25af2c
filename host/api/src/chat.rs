//! Chats of web pages: visitors without an account talk with an agent over HTTP.
//!
//! A chat is a connector whose service is this host: what a visitor says arrives as the messages of
//! any service do, and what is said to them are their outbound messages, which stay in the store. A
//! visitor is a user, bound by a connector key that follows from a token of their own, so that they
//! see what is sent to them and nothing else.
//!
//! - who a visitor is: `chat/visitor.rs`
//! - the pages that may use a chat: `chat/origin.rs`
//! - routes: `routes/chat.rs`; their event stream: `stream/visitor.rs`; limits: `visits.rs`

mod origin;
mod visitor;

pub(crate) use origin::{cross_origin, preflight};
pub(crate) use visitor::{Chat, USER_PREFIX, Visitor, VisitorToken, chat_named, visiting};
