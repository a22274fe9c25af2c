//! The buckets of tools, for the runtime: reads of the store, and one call at a time that may
//! write.

mod holds;

pub(crate) use holds::Holds;

use crate::core::Core;
use async_trait::async_trait;
use domain::bucket::BucketSize;
use domain::event::RunStarted;
use domain::grant::{Behalf, BucketGrant, BucketPlace};
use runtime::{BucketError, Buckets, Hold};
use std::sync::Arc;

/// The buckets of one component, for one call.
pub(crate) struct CallBuckets {
    core: Arc<Core>,
    component: String,
    started: RunStarted,
}

impl CallBuckets {
    /// Creates the buckets for a call in a run.
    pub(crate) fn new(core: &Arc<Core>, component: &str, started: &RunStarted) -> Self {
        Self {
            core: core.clone(),
            component: component.to_owned(),
            started: started.clone(),
        }
    }

    fn place(&self, bucket: &BucketGrant) -> BucketPlace {
        bucket.place(&self.component, behalf(&self.started))
    }
}

/// Returns the user, the agent and the session on whose behalf a run makes its calls.
pub(crate) fn behalf(started: &RunStarted) -> Behalf<'_> {
    Behalf {
        user: started.user_id.as_str(),
        agent: started.agent,
        session: started.session,
    }
}

#[async_trait]
impl Buckets for CallBuckets {
    async fn hold(&self, bucket: &BucketGrant) -> Hold {
        Hold::new(self.core.holds.hold(self.place(bucket)).await)
    }

    async fn value(&self, bucket: &BucketGrant, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        self.core
            .store
            .bucket_value(&self.place(bucket), key)
            .await
            .map_err(unreadable)
    }

    async fn value_bytes(
        &self,
        bucket: &BucketGrant,
        key: &str,
    ) -> Result<Option<u64>, BucketError> {
        self.core
            .store
            .bucket_value_bytes(&self.place(bucket), key)
            .await
            .map_err(unreadable)
    }

    async fn keys(
        &self,
        bucket: &BucketGrant,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<String>, BucketError> {
        self.core
            .store
            .bucket_keys(&self.place(bucket), after, max)
            .await
            .map_err(unreadable)
    }

    async fn size(&self, bucket: &BucketGrant) -> Result<BucketSize, BucketError> {
        self.core
            .store
            .bucket_size(&self.place(bucket))
            .await
            .map_err(unreadable)
    }
}

fn unreadable(error: store::ReadError) -> BucketError {
    BucketError(Box::new(error))
}
