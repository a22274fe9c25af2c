//! Buckets in memory, for calls of a test whose writes nobody keeps.

use async_trait::async_trait;
use domain::bucket::BucketSize;
use domain::grant::BucketGrant;
use runtime::{BucketError, Buckets, Hold};
use std::collections::BTreeMap;

/// The content of buckets, by bucket and key.
pub(crate) struct GivenBuckets(pub(crate) BTreeMap<String, BTreeMap<String, String>>);

impl GivenBuckets {
    fn entries(&self, bucket: &BucketGrant) -> impl Iterator<Item = (&String, &String)> {
        self.0.get(&bucket.bucket).into_iter().flatten()
    }

    fn entry(&self, bucket: &BucketGrant, key: &str) -> Option<&String> {
        self.0.get(&bucket.bucket)?.get(key)
    }
}

#[async_trait]
impl Buckets for GivenBuckets {
    async fn hold(&self, _bucket: &BucketGrant) -> Hold {
        Hold::new(())
    }

    async fn value(&self, bucket: &BucketGrant, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self
            .entry(bucket, key)
            .map(|value| value.clone().into_bytes()))
    }

    async fn value_bytes(
        &self,
        bucket: &BucketGrant,
        key: &str,
    ) -> Result<Option<u64>, BucketError> {
        Ok(self.entry(bucket, key).map(|value| value.len() as u64))
    }

    async fn keys(
        &self,
        bucket: &BucketGrant,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, BucketError> {
        let keys = self.entries(bucket).map(|(key, _)| key);
        let keys = keys.filter(|key| after.is_none_or(|after| key.as_str() > after));
        Ok(keys.take(max).cloned().collect())
    }

    async fn size(&self, bucket: &BucketGrant) -> Result<BucketSize, BucketError> {
        let empty = BucketSize::default();
        Ok(self
            .entries(bucket)
            .fold(empty, |size, (key, value)| BucketSize {
                keys: size.keys + 1,
                bytes: size.bytes + (key.len() + value.len()) as u64,
            }))
    }
}
