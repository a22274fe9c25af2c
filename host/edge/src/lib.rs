//! The edge: where the world comes in besides the API, and where words leave besides event streams.
//!
//! Triggers (a schedule, a file that changed, a webhook) and connectors (a chat service) will enter
//! here. What arrives becomes an input of a session through
//! [`Broker::post_message`](broker::Broker::post_message), durable before anybody outside is told
//! that it arrived, and under an idempotency key that follows from the sender's own id of it, so
//! that the same delivery twice is one input. Their WIT worlds are in `wit/trigger.wit` and
//! `wit/connector.wit`. This version runs none of them, so nothing stands here yet. Never in here:
//! wasmtime, rules, routes.
