//! Rows of a database by the API key that they came with. The tests of the whole host count them
//! too.

use domain::key::KeyId;
use rusqlite::Connection;
use std::path::Path;

/// Returns the bytes of all rows that name a key.
pub(crate) fn bytes_of_rows(database: &Path, key: &KeyId) -> u64 {
    let connection = Connection::open(database).unwrap();
    let text = "SELECT CAST((SELECT total(bytes) FROM events WHERE brought_with = \
                number) + (SELECT total(length(bytes)) FROM blobs WHERE brought_with = number) + \
                (SELECT total(length(reply)) FROM idempotency WHERE brought_with = number) AS \
                INTEGER) FROM key_storage WHERE key_id = ?1";
    let bytes: i64 = connection
        .query_row(text, [key.as_str()], |row| row.get(0))
        .unwrap();
    u64::try_from(bytes).unwrap()
}
