//! The buckets of tools, for the runtime: reads of the store, and one call at a time that may
//! write.

mod holds;

pub(crate) use holds::Holds;

use crate::core::Core;
use async_trait::async_trait;
use domain::bucket::BucketSize;
use domain::event::RunStarted;
use domain::grant::{Behalf, BucketGrant, BucketPlace};
use domain::id::{AgentId, SessionId};
use domain::user::UserId;
use runtime::{BucketError, Buckets, Hold};
use std::sync::Arc;

/// The buckets of one component, for one call.
pub(crate) struct CallBuckets {
    core: Arc<Core>,
    component: String,
    behalf: OwnBehalf,
}

/// The user, the agent and the session on whose behalf a call is made, whether in a run or not.
#[derive(Debug, Clone)]
pub(crate) struct OwnBehalf {
    pub(crate) user: UserId,
    pub(crate) agent: AgentId,
    pub(crate) session: SessionId,
}

impl From<&RunStarted> for OwnBehalf {
    fn from(started: &RunStarted) -> Self {
        Self {
            user: started.user_id.clone(),
            agent: started.agent,
            session: started.session,
        }
    }
}

impl CallBuckets {
    /// Creates the buckets for a call.
    pub(crate) fn new(core: &Arc<Core>, component: &str, behalf: OwnBehalf) -> Self {
        Self {
            core: core.clone(),
            component: component.to_owned(),
            behalf,
        }
    }

    fn place(&self, bucket: &BucketGrant) -> BucketPlace {
        let OwnBehalf {
            user,
            agent,
            session,
        } = &self.behalf;
        let behalf = Behalf {
            user: user.as_str(),
            agent: *agent,
            session: *session,
        };
        bucket.place(&self.component, behalf)
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

    async fn values(
        &self,
        bucket: &BucketGrant,
        keys: Vec<String>,
        bytes_max: usize,
    ) -> Result<Option<Vec<Option<Vec<u8>>>>, BucketError> {
        self.core
            .store
            .bucket_values(&self.place(bucket), keys, bytes_max)
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
