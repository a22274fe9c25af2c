//! Granted folders in whose places others are: moved, removed or replaced since they were opened.

use super::{Refused, Reloading};
use crate::serve::{folders_of, open_folders};
use broker::Entry;

impl Reloading {
    /// Opens the granted folders again if others are in the places of some. Returns those.
    pub(super) async fn open_what_moved(&self, entries: &[Entry]) -> Result<Vec<String>, Refused> {
        let moved = self.moved_folders().await;
        if !moved.is_empty() {
            let data = self.host.loaded.data_dir();
            open_folders(&self.host.runtime, folders_of(entries), &data)
                .await
                .map_err(Refused::for_now)?;
            tracing::info!(
                folders = moved.join(", "),
                "granted folders were opened anew"
            );
        }
        Ok(moved)
    }

    /// Returns the granted folders in whose places others are now.
    pub(super) async fn moved_folders(&self) -> Vec<String> {
        let runtime = self.host.runtime.clone();
        let moved = tokio::task::spawn_blocking(move || runtime.moved_folders()).await;
        let moved = moved.unwrap_or_default().into_iter();
        moved.map(|path| path.display().to_string()).collect()
    }
}
