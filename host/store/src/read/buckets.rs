//! Reads of the contents of buckets.

use super::ReadError;
use crate::projections::scope_name;
use crate::sql::{Columns, limit as rows};
use crate::store::Store;
use domain::bucket::BucketSize;
use domain::grant::BucketPlace;
use rusqlite::params;

/// A statement about one key of one bucket.
macro_rules! of_key {
    ($column:literal) => {
        concat!(
            "SELECT ",
            $column,
            " FROM buckets JOIN bucket_entries entry ON entry.bucket = buckets.id AND entry.key = \
             ?5 WHERE component = ?1 AND buckets.bucket = ?2 AND scope = ?3 AND of = ?4"
        )
    };
}

impl Store {
    /// The value of a key; none when there is no such key.
    pub async fn bucket_value(
        &self,
        place: &BucketPlace,
        key: &str,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let key = key_of(place, key);
        self.point_read(move |sql| sql.row(of_key!("entry.value"), key, |row| row.get(0)))
            .await
    }

    /// The values of some keys in their order, none for a key that there is not; all of the same
    /// state. None when they have more than `bytes_max` bytes together.
    pub async fn bucket_values(
        &self,
        place: &BucketPlace,
        keys: Vec<String>,
        bytes_max: usize,
    ) -> Result<Option<Vec<Option<Vec<u8>>>>, ReadError> {
        let [component, bucket, scope, of, _] = key_of(place, "");
        self.read(move |sql| {
            let mut values = Vec::with_capacity(keys.len());
            let mut bytes = 0;
            for key in &keys {
                let key = [&component, &bucket, &scope, &of, key];
                let value: Option<Vec<u8>> =
                    sql.row(of_key!("entry.value"), key, |row| row.get(0))?;
                bytes += value.as_ref().map_or(0, Vec::len);
                if bytes > bytes_max {
                    return Ok(None);
                }
                values.push(value);
            }
            Ok(Some(values))
        })
        .await
    }

    /// Returns the size of a key's value in bytes; none when there is no such key.
    pub async fn bucket_value_bytes(
        &self,
        place: &BucketPlace,
        key: &str,
    ) -> Result<Option<u64>, ReadError> {
        let key = key_of(place, key);
        self.point_read(move |sql| sql.row(of_key!("length(entry.value)"), key, |row| row.uint(0)))
            .await
    }

    /// The first keys of a bucket after a key, at most `limit`, in the order of their bytes.
    pub async fn bucket_keys(
        &self,
        place: &BucketPlace,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, ReadError> {
        let place = place.clone();
        // No key is empty, so all are after the empty one.
        let after = after.unwrap_or_default().to_owned();
        self.read(move |sql| {
            sql.rows(
                "SELECT entry.key FROM buckets JOIN bucket_entries entry ON entry.bucket = \
                 buckets.id WHERE component = ?1 AND buckets.bucket = ?2 AND scope = ?3 AND of = \
                 ?4 AND entry.key > ?5 ORDER BY entry.key LIMIT ?6",
                params![
                    place.component,
                    place.bucket,
                    scope_name(place.scope),
                    place.of,
                    after,
                    rows(limit)
                ],
                |row| row.get(0),
            )
        })
        .await
    }

    /// Returns the size of a bucket's contents.
    pub async fn bucket_size(&self, place: &BucketPlace) -> Result<BucketSize, ReadError> {
        let [component, bucket, scope, of, _] = key_of(place, "");
        let held = self.point_read(move |sql| {
            sql.row(
                "SELECT keys, bytes FROM buckets WHERE component = ?1 AND bucket = ?2 AND scope = \
                 ?3 AND of = ?4",
                [component, bucket, scope, of],
                |row| {
                    Ok(BucketSize {
                        keys: row.uint(0)?,
                        bytes: row.uint(1)?,
                    })
                },
            )
        });
        Ok(held.await?.unwrap_or_default())
    }
}

fn key_of(place: &BucketPlace, key: &str) -> [String; 5] {
    let BucketPlace {
        component,
        bucket,
        scope,
        of,
    } = place;
    [component, bucket, scope_name(*scope), of, key].map(str::to_owned)
}
