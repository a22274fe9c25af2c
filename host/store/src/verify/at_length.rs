//! Reads of all that is stored, which may take so long that they are in the way of the write-ahead
//! log.

use crate::copy::copy_to_read;
use crate::read::ReadError;
use crate::sql::{self, Sql};
use crate::store::Store;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Store {
    /// Runs a long read: in the store itself or, if it is in the way of the log, in a copy.
    pub(crate) async fn read_at_length<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Sql<'_>) -> sql::Result<T> + Clone + Send + 'static,
    ) -> Result<T, ReadError> {
        match self.read(read.clone()).await {
            Err(ReadError::InTheWay) => self.read_copy(read).await,
            done => done,
        }
    }

    /// Reads in a copy, on a thread of its own.
    async fn read_copy<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Sql<'_>) -> sql::Result<T> + Send + 'static,
    ) -> Result<T, ReadError> {
        // One copy at a time: each is as large as the store, and all have the same name.
        let alone = Arc::clone(self.copying()).lock_owned().await;
        let writer = self.senders().ok_or(ReadError::Closed)?.writer;
        let database = self.database().to_owned();
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("store-copy".to_owned())
            .spawn(move || {
                let _alone = alone;
                let copied = copy_to_read(&database, writer);
                let _ = reply.send(copied.and_then(|(copy, connection)| {
                    let found = read(&Sql::new(&connection));
                    drop(connection);
                    drop(copy);
                    Ok(found?)
                }));
            });
        thread.map_err(|source| ReadError::Unavailable {
            source: source.into(),
        })?;
        answer.await.map_err(|_| self.unanswered())?
    }
}
