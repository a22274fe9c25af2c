//! Connectors, with servers of the tests in the services' places: conversations, unknown senders,
//! hosts that are killed, troubles, calls of services, web pages, and what people see of a reply in
//! the making.

mod conversation;
mod direct;
mod restarts;
mod scene;
mod telegram_server;
mod trouble;
mod unknown_senders;
mod webhooks;
