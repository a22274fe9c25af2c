//! Futures whose code is compiled in this crate. That of an `async fn` is compiled in every crate
//! that awaits it, with all that it awaits: here that would be the broker, in one crate of tests.

use std::pin::Pin;

/// A future that any thread may go on with.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A future of one thread.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
