//! `wasi:keyvalue`: buckets that a tool was granted. What it writes waits for the end of the call;
//! see [`WriteOverlay`].

pub(crate) mod write_overlay;

use crate::bindings::keyvalue::wasi::keyvalue::store::{Error, KeyResponse};
use crate::bindings::keyvalue::wasi::keyvalue::{atomics, batch, store};
use crate::call::{CallState, Purpose};
use domain::grant::BucketGrant;
use std::sync::Arc;
use wasmtime::component::Resource;
use write_overlay::{Bucket, Stopped, WriteOverlay};

type Entry = (String, Vec<u8>);

/// An answer that ends the call when the host cannot give it.
type Answer<T> = wasmtime::Result<Result<T, Error>>;

/// The access that an operation needs.
#[derive(Clone, Copy)]
enum Needs {
    Reading,
    Writing,
}

impl CallState {
    /// Returns the bucket behind a handle, and the write overlay of the call.
    fn bucket(
        &mut self,
        bucket: &Resource<Bucket>,
    ) -> wasmtime::Result<(Arc<BucketGrant>, &mut WriteOverlay)> {
        let grant = self.table.get(bucket)?.0.clone();
        match &mut self.purpose {
            Purpose::Tool(work) => Ok((grant, &mut work.overlay)),
            Purpose::Describe | Purpose::Step(_) | Purpose::Fire | Purpose::Connect(_) => {
                Err(wasmtime::format_err!("there are no buckets here"))
            }
        }
    }

    /// Records the result of an operation, and returns it to the guest.
    fn answer<T>(
        &mut self,
        grant: &BucketGrant,
        needs: Needs,
        function: &str,
        result: Result<T, Stopped>,
    ) -> Answer<T> {
        let capability = match needs {
            Needs::Reading => grant.reading(),
            Needs::Writing => grant.writing(),
        };
        let detail = || format!("wasi:keyvalue/{function} `{}`", grant.bucket);
        match result {
            Ok(value) => {
                self.recorder.granted(&capability, detail);
                Ok(Ok(value))
            }
            Err(Stopped::ReadOnly) => {
                self.recorder.refused(&capability, detail);
                Ok(Err(Error::AccessDenied))
            }
            Err(Stopped::Unfit(unfit)) => {
                if let Some(limit) = unfit.limit() {
                    self.recorder
                        .limited(&capability, || format!("{limit}: {}", detail()));
                }
                Ok(Err(Error::Other(unfit.to_string())))
            }
            Err(Stopped::Unreadable(error)) => Err(self.faulted(&error)),
        }
    }
}

impl store::Host for CallState {
    async fn open(&mut self, identifier: String) -> Answer<Resource<Bucket>> {
        let found = match &self.purpose {
            Purpose::Tool(work) => work.overlay.find(&identifier),
            Purpose::Describe | Purpose::Step(_) | Purpose::Fire | Purpose::Connect(_) => None,
        };
        if let Some(grant) = found {
            return Ok(Ok(self.table.push(Bucket(grant))?));
        }
        // A name that no bucket has stands for no capability.
        let named = BucketGrant::check_name(&identifier).is_ok();
        let capability = if named {
            format!("{identifier}.read")
        } else {
            "wasi:keyvalue".to_owned()
        };
        self.recorder.refused(&capability, || {
            format!("wasi:keyvalue/store.open `{identifier}`")
        });
        Ok(Err(Error::AccessDenied))
    }
}

impl store::HostBucket for CallState {
    async fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let result = overlay.get(&grant, &key).await;
        self.answer(&grant, Needs::Reading, "store.get", result)
    }

    async fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let result = overlay.put(&grant, &key, Some(value)).await;
        self.answer(&grant, Needs::Writing, "store.set", result)
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<()> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let result = overlay.put(&grant, &key, None).await;
        self.answer(&grant, Needs::Writing, "store.delete", result)
    }

    async fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<bool> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let result = overlay.exists(&grant, &key).await;
        self.answer(&grant, Needs::Reading, "store.exists", result)
    }

    async fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<u64>,
    ) -> Answer<KeyResponse> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let result = overlay.keys(&grant, cursor).await;
        let result = result.map(|page| KeyResponse {
            keys: page.keys,
            cursor: page.cursor,
        });
        self.answer(&grant, Needs::Reading, "store.list-keys", result)
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for CallState {
    async fn increment(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        delta: u64,
    ) -> Answer<u64> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let result = overlay.increment(&grant, &key, delta).await;
        self.answer(&grant, Needs::Writing, "atomics.increment", result)
    }
}

impl batch::Host for CallState {
    async fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Answer<Vec<Option<Entry>>> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let result = overlay.get_many(&grant, keys).await;
        self.answer(&grant, Needs::Reading, "batch.get-many", result)
    }

    async fn set_many(&mut self, bucket: Resource<Bucket>, entries: Vec<Entry>) -> Answer<()> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let entries = entries
            .into_iter()
            .map(|(key, value)| (key, Some(value)))
            .collect();
        let result = overlay.put_many(&grant, entries).await;
        self.answer(&grant, Needs::Writing, "batch.set-many", result)
    }

    async fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Answer<()> {
        let (grant, overlay) = self.bucket(&bucket)?;
        let entries = keys.into_iter().map(|key| (key, None)).collect();
        let result = overlay.put_many(&grant, entries).await;
        self.answer(&grant, Needs::Writing, "batch.delete-many", result)
    }
}
