//! Buckets in memory, for one call of a test: they are gone when it has ended.

use async_trait::async_trait;
use domain::bucket::BucketSize;
use domain::grant::BucketGrant;
use runtime::{BucketError, Buckets, Hold, Written};
use std::collections::BTreeMap;

/// Values of buckets as a file of calls has them, by bucket and key.
pub(crate) type BucketTexts = BTreeMap<String, BTreeMap<String, String>>;

/// The content of buckets, by bucket and key.
#[derive(Debug, Clone)]
pub(crate) struct GivenBuckets(BTreeMap<String, BTreeMap<String, Vec<u8>>>);

impl GivenBuckets {
    pub(crate) fn new(texts: &BucketTexts) -> Self {
        let bytes = |entries: &BTreeMap<String, String>| -> BTreeMap<String, Vec<u8>> {
            let entries = entries.iter();
            entries
                .map(|(key, value)| (key.clone(), value.clone().into_bytes()))
                .collect()
        };
        let buckets = texts.iter();
        Self(
            buckets
                .map(|(name, entries)| (name.clone(), bytes(entries)))
                .collect(),
        )
    }

    /// Takes over what a segment has written, as a host does before the next one.
    pub(crate) fn commit(&mut self, written: &Written) {
        for (bucket, entries) in &written.buckets {
            let stored = self.0.entry(bucket.bucket.clone()).or_default();
            for entry in entries {
                match entry.value.bytes() {
                    Some(value) => stored.insert(entry.key.clone(), value.to_vec()),
                    None => stored.remove(&entry.key),
                };
            }
        }
    }

    /// Returns the content as text.
    pub(crate) fn texts(&self) -> BucketTexts {
        let texts = |entries: &BTreeMap<String, Vec<u8>>| -> BTreeMap<String, String> {
            let entries = entries.iter();
            entries
                .map(|(key, value)| (key.clone(), String::from_utf8_lossy(value).into_owned()))
                .collect()
        };
        let buckets = self.0.iter();
        buckets
            .map(|(name, entries)| (name.clone(), texts(entries)))
            .collect()
    }

    fn entries(&self, bucket: &BucketGrant) -> impl Iterator<Item = (&String, &Vec<u8>)> {
        self.0.get(&bucket.bucket).into_iter().flatten()
    }

    fn entry(&self, bucket: &BucketGrant, key: &str) -> Option<&Vec<u8>> {
        self.0.get(&bucket.bucket)?.get(key)
    }
}

#[async_trait]
impl Buckets for GivenBuckets {
    async fn hold(&self, _bucket: &BucketGrant) -> Hold {
        Hold::new(())
    }

    async fn value(&self, bucket: &BucketGrant, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        Ok(self.entry(bucket, key).cloned())
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
