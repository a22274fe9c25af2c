//! Reads of the contents of buckets.

use super::ReadError;
use crate::projections::scope_name;
use crate::sql::named;
use crate::store::Store;
use domain::bucket::BucketSize;
use domain::grant::BucketPlace;

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
        self.point_read(move |sql| sql.one(of_key!("entry.value"), key))
            .await
    }

    /// The values of some keys in their order, all of the same state; none for a missing key.
    /// Returns none as a whole when the values exceed `bytes_max` bytes together.
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
                let value: Option<Vec<u8>> = sql.one(of_key!("entry.value"), key)?;
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
        self.point_read(move |sql| sql.one::<u64>(of_key!("length(entry.value)"), key))
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
            sql.all(
                "SELECT entry.key FROM buckets JOIN bucket_entries entry ON entry.bucket = \
                 buckets.id WHERE component = :component AND buckets.bucket = :bucket AND scope = \
                 :scope AND of = :owner AND entry.key > :key ORDER BY entry.key LIMIT :limit",
                named![
                    component = place.component,
                    bucket = place.bucket,
                    scope = scope_name(place.scope),
                    owner = place.of,
                    key = after,
                    limit
                ],
            )
        })
        .await
    }

    /// Returns the size of a bucket's contents.
    pub async fn bucket_size(&self, place: &BucketPlace) -> Result<BucketSize, ReadError> {
        let [component, bucket, scope, of, _] = key_of(place, "");
        let leased = self.point_read(move |sql| {
            let text = "SELECT keys, bytes FROM buckets WHERE component = :component AND bucket = \
                        :bucket AND scope = :scope AND of = :owner";
            let params = named![component, bucket, scope, owner = of];
            sql.one(text, params)
        });
        let leased: Option<(u64, u64)> = leased.await?;
        Ok(
            leased.map_or_else(BucketSize::default, |(keys, bytes)| BucketSize {
                keys,
                bytes,
            }),
        )
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
