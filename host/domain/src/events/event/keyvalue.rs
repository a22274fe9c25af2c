//! Payloads about tools' values in buckets.

use crate::access::bucket::WrittenEntry;
use crate::access::grant::BucketPlace;
use crate::values::id::{OperationId, RunId};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// See [`super::Event::KeyValueWritten`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyValueWritten {
    /// The run.
    pub run: RunId,
    /// The call that wrote.
    pub operation: OperationId,
    /// Its segment, counted from 0.
    pub segment: u32,
    /// The bucket.
    pub place: BucketPlace,
    /// The new value of each key, in the order of the keys, each key once.
    pub entries: Vec<WrittenEntry>,
    /// Time of the write.
    pub time: Timestamp,
}
