//! The component that carries command lines out: part of the program, and in no catalogue's list.

use crate::engine::Component;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::OnceCell;

type Load = dyn Fn() -> BoxFuture<'static, Result<Arc<Component>, String>> + Send + Sync;

/// The component of command lines, which is loaded when it is first needed. Clones share it.
#[derive(Clone)]
pub struct LineComponent {
    load: Arc<Load>,
    loaded: Arc<OnceCell<Arc<Component>>>,
}

impl LineComponent {
    /// Takes the function that loads the component. What it refuses is tried again the next time.
    pub fn new<F>(load: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Arc<Component>, String>> + Send + 'static,
    {
        Self {
            load: Arc::new(move || load().boxed()),
            loaded: Arc::default(),
        }
    }

    /// Returns the component, with limits of its own: nothing that a line does counts against
    /// another.
    pub(crate) async fn of_one_line(&self) -> Result<Arc<Component>, String> {
        let loaded = self.loaded.get_or_try_init(|| (self.load)()).await?;
        Ok(loaded.named("shell"))
    }
}

impl std::fmt::Debug for LineComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineComponent")
            .field("loaded", &self.loaded)
            .finish_non_exhaustive()
    }
}

impl Default for LineComponent {
    fn default() -> Self {
        Self::new(async || Err("this host has none".to_owned()))
    }
}
