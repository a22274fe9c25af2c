//! Verification of the data outside of the events: blobs match their digests, and projections match
//! the events.

use super::turns;
use crate::copy::copy_to_read;
use crate::projections::{PROJECTIONS, fold};
use crate::read::ReadError;
use crate::sql::{self, Columns, Connection, Sql};
use crate::sqlite::Durability;
use crate::store::Maintenance;
use crate::streams::Named;
use crate::{EMPTY_STATE, full_text, purge, schema, texts};
use domain::digest::Digest;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Returns the first stored data that has changed, if any. It has to see one state of the store, so
/// it runs in a transaction or alone. Projections are compared unless a purge is under way: only at
/// its end do they equal the fold of the events.
pub(crate) fn problem(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    if let Some(problem) = damage(sql)? {
        return Ok(Some(problem));
    }
    if let Some(problem) = changed_blob(sql)? {
        return Ok(Some(problem));
    }
    if let Some(problem) = texts::changed(sql)? {
        return Ok(Some(problem));
    }
    if let Some(problem) = turns::problem(sql)? {
        return Ok(Some(problem));
    }
    if purge::is_any_open(sql)? {
        return Ok(None);
    }
    match changed_projection(sql)? {
        Some(problem) => Ok(Some(problem)),
        None => missing_blob(sql),
    }
}

/// Returns the damage that SQLite itself finds in its pages and indices.
fn damage(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    full_text::see(sql)?;
    let found = sql.connection().damage_with_indexes()?;
    Ok(found.map(|found| format!("the database is damaged: {found}")))
}

fn changed_blob(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    let mut blobs = sql
        .connection()
        .prepare("SELECT digest, bytes FROM blobs")?;
    let mut rows = blobs.query([])?;
    while let Some(row) = rows.next()? {
        let bytes = row.bytes_opt(1).ok().flatten().unwrap_or_default();
        let digest = row.digest(0)?;
        if Digest::of(bytes) != digest {
            return Ok(Some(format!(
                "the blob {} is not what its digest says",
                digest.short()
            )));
        }
    }
    Ok(None)
}

/// Uses the projection of the streams that name blobs, so that one has to be right. It skips the
/// empty state.
fn missing_blob(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    let missing = sql.one::<(Digest, Named)>(
        "SELECT named.digest, streams.stream_kind, streams.stream_id FROM (SELECT \
         digest, stream FROM blob_references UNION ALL SELECT ?1, NULL) named LEFT JOIN blobs ON \
         blobs.digest = named.digest LEFT JOIN streams ON streams.number = named.stream WHERE \
         blobs.digest IS NULL LIMIT 1",
        [Digest::of(EMPTY_STATE).0],
    )?;
    Ok(missing.map(|(digest, Named(stream))| {
        let stream = stream.as_deref().unwrap_or("session/*");
        format!(
            "the blob {} is missing that the stream `{stream}` names",
            digest.short()
        )
    }))
}

/// Folds all events again, into a temporary database that ends with this call, and compares.
fn changed_projection(sql: &Sql<'_>) -> sql::Result<Option<String>> {
    // A private database without a name: SQLite keeps it in memory as long as it is small, then in
    // a temporary file.
    let again = Connection::open("")?;
    schema::migrate(&again, "")?;
    again.sync(Durability::Off)?;
    again.execute_batch("BEGIN")?;
    fold::fold_after(0, sql, &Sql::new(&again), &mut |_| ())?;
    if !sql.connection().has_layout_of(&again)? {
        return Ok(Some("the layout of the database was changed".to_owned()));
    }
    for table in PROJECTIONS {
        let key = again.columns_of(table)?.key.join(", ");
        if !sql
            .connection()
            .same_rows(&again, &format!("SELECT * FROM {table} ORDER BY {key}"))?
        {
            return Ok(Some(format!(
                "the table `{table}` is not what the events say; the events themselves are whole"
            )));
        }
    }
    Ok(None)
}

impl Maintenance {
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
