//! The buckets of one call: their grants, the call's writes over what is stored, and the holds that
//! keep other writers out.
//!
//! A bucket that the call may write is held from its first use on, reading included: what was read
//! and then written could otherwise undo another call's write in between. One that it may only read
//! is never held.

use crate::outcome::Written;
use crate::view::{BucketError, Buckets, Hold};
use domain::bucket::{
    BATCH_BYTES_MAX, Overlay, PAGE_KEYS_MAX, Spent, Unfit, check_batch, check_key, counted,
};
use domain::grant::{Access, BucketGrant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Cursors that are remembered; the oldest are forgotten.
const CURSORS_MAX: usize = 1_024;

/// A bucket that was opened.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub struct Bucket(pub(super) Arc<BucketGrant>);

type Entry = (String, Vec<u8>);

/// The reason that an operation did not take place.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stopped {
    #[error("the bucket can only be read")]
    ReadOnly,
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error(transparent)]
    Unreadable(#[from] BucketError),
}

/// The writes of one call over what is stored, and the buckets that it holds for them.
pub(crate) struct WriteOverlay {
    buckets: Arc<dyn Buckets>,
    granted: Vec<Arc<BucketGrant>>,
    used: BTreeMap<String, Used>,
    spent: Spent,
    cursors: VecDeque<Cursor>,
    /// The number of the latest cursor.
    cursor: u64,
}

/// A page of keys that the guest may ask for next.
struct Cursor {
    number: u64,
    bucket: String,
    /// The key after which the page begins.
    after: String,
}

/// A bucket that was used.
struct Used {
    grant: Arc<BucketGrant>,
    hold: Option<Hold>,
    /// None before the first write.
    overlay: Option<Overlay>,
}

/// A page of keys, with the number of the cursor of the next.
pub(super) struct KeyPage {
    pub(super) keys: Vec<String>,
    pub(super) cursor: Option<u64>,
}

impl WriteOverlay {
    /// The buckets that a call is bound to.
    pub(crate) fn new(buckets: Arc<dyn Buckets>, granted: &[BucketGrant]) -> Self {
        let granted = granted.iter().cloned().map(Arc::new).collect();
        Self {
            buckets,
            granted,
            used: BTreeMap::new(),
            spent: Spent::default(),
            cursors: VecDeque::new(),
            cursor: 0,
        }
    }

    /// Returns everything that was written, with the holds for it. A call that wrote nothing holds
    /// nothing any more.
    pub(crate) fn into_written(self) -> Written {
        let mut written = Vec::new();
        let mut holds = Vec::new();
        for used in self.used.into_values() {
            holds.extend(used.hold);
            let entries = used.overlay.map(Overlay::into_entries).unwrap_or_default();
            if !entries.is_empty() {
                written.push((BucketGrant::clone(&used.grant), entries));
            }
        }
        if written.is_empty() {
            holds.clear();
        }
        Written {
            buckets: written,
            holds,
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<BucketGrant>> {
        self.granted
            .iter()
            .find(|grant| grant.bucket == name)
            .cloned()
    }

    pub(super) async fn get(
        &mut self,
        grant: &Arc<BucketGrant>,
        key: &str,
    ) -> Result<Option<Vec<u8>>, Stopped> {
        check_key(key)?;
        let used = self.used(grant).await;
        if let Some(written) = used.overlay.as_ref().and_then(|overlay| overlay.get(key)) {
            return Ok(written.map(<[u8]>::to_vec));
        }
        Ok(self.buckets.value(grant, key).await?)
    }

    pub(super) async fn exists(
        &mut self,
        grant: &Arc<BucketGrant>,
        key: &str,
    ) -> Result<bool, Stopped> {
        check_key(key)?;
        let used = self.used(grant).await;
        if let Some(written) = used.overlay.as_ref().and_then(|overlay| overlay.get(key)) {
            return Ok(written.is_some());
        }
        Ok(self.buckets.value_bytes(grant, key).await?.is_some())
    }

    pub(super) async fn keys(
        &mut self,
        grant: &Arc<BucketGrant>,
        cursor: Option<u64>,
    ) -> Result<KeyPage, Stopped> {
        let after = match cursor {
            None => None,
            Some(cursor) => {
                let is_meant =
                    |known: &&Cursor| known.number == cursor && known.bucket == grant.bucket;
                let known = self.cursors.iter().find(is_meant).ok_or(Unfit::NoPage)?;
                Some(known.after.clone())
            }
        };
        self.used(grant).await;
        let stored = self
            .buckets
            .keys(grant, after.as_deref(), PAGE_KEYS_MAX + 1)
            .await?;
        let used = self.used(grant).await;
        let nothing = Overlay::default();
        let page = used
            .overlay
            .as_ref()
            .unwrap_or(&nothing)
            .page(after.as_deref(), stored);
        let cursor = page.next.map(|next| {
            self.cursor += 1;
            if self.cursors.len() == CURSORS_MAX {
                self.cursors.pop_front();
            }
            self.cursors.push_back(Cursor {
                number: self.cursor,
                bucket: grant.bucket.clone(),
                after: next,
            });
            self.cursor
        });
        Ok(KeyPage {
            keys: page.keys,
            cursor,
        })
    }

    pub(super) async fn get_many(
        &mut self,
        grant: &Arc<BucketGrant>,
        keys: Vec<String>,
    ) -> Result<Vec<Option<Entry>>, Stopped> {
        check_batch(keys.iter().map(String::as_str))?;
        self.used(grant).await;
        let nothing = Overlay::default();
        let written = self.used.get(&grant.bucket);
        let written = written.and_then(|used| used.overlay.as_ref());
        let written = written.unwrap_or(&nothing);
        let asked = keys.iter().filter(|key| written.get(key).is_none());
        let stored = self
            .buckets
            .values(grant, asked.cloned().collect(), BATCH_BYTES_MAX)
            .await?;
        let mut stored = stored.ok_or(Unfit::BatchBytes)?.into_iter();
        let mut found = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in keys {
            let value = match written.get(&key) {
                Some(written) => written.map(<[u8]>::to_vec),
                None => stored.next().flatten(),
            };
            bytes += key.len() + value.as_ref().map_or(0, Vec::len);
            if bytes > BATCH_BYTES_MAX {
                return Err(Unfit::BatchBytes.into());
            }
            found.push(value.map(|value| (key, value)));
        }
        Ok(found)
    }

    /// Sets a key to a value, or deletes it.
    pub(super) async fn put(
        &mut self,
        grant: &Arc<BucketGrant>,
        key: &str,
        value: Option<Vec<u8>>,
    ) -> Result<(), Stopped> {
        writable(grant)?;
        check_key(key)?;
        if self.used(grant).await.overlay.is_none() {
            let size = self.buckets.size(grant).await?;
            self.used(grant).await.overlay = Some(Overlay::over(size));
        }
        let stored = self.buckets.value_bytes(grant, key).await?;
        let Some(overlay) = self
            .used
            .get_mut(&grant.bucket)
            .and_then(|used| used.overlay.as_mut())
        else {
            return Ok(());
        };
        Ok(overlay.put(key, value, stored, grant, &mut self.spent)?)
    }

    /// Sets or deletes several keys, one after the other.
    pub(super) async fn put_many(
        &mut self,
        grant: &Arc<BucketGrant>,
        entries: Vec<(String, Option<Vec<u8>>)>,
    ) -> Result<(), Stopped> {
        writable(grant)?;
        check_batch(entries.iter().map(|(key, _)| key.as_str()))?;
        for (key, value) in entries {
            self.put(grant, &key, value).await?;
        }
        Ok(())
    }

    pub(super) async fn increment(
        &mut self,
        grant: &Arc<BucketGrant>,
        key: &str,
        delta: u64,
    ) -> Result<u64, Stopped> {
        writable(grant)?;
        let sum = counted(self.get(grant, key).await?.as_deref(), delta)?;
        self.put(grant, key, Some(sum.to_string().into_bytes()))
            .await?;
        Ok(sum)
    }

    /// A bucket that is being used, held if it may be written. Waits for its present holder, for as
    /// long as the call may take.
    async fn used(&mut self, grant: &Arc<BucketGrant>) -> &mut Used {
        let leased = self
            .used
            .get(&grant.bucket)
            .is_some_and(|used| used.hold.is_some());
        let hold = if grant.access == Access::ReadWrite && !leased {
            Some(self.buckets.hold(grant).await)
        } else {
            None
        };
        let unused = || Used {
            grant: grant.clone(),
            hold: None,
            overlay: None,
        };
        let entry = self.used.entry(grant.bucket.clone());
        let used = entry.or_insert_with(unused);
        used.hold = used.hold.take().or(hold);
        used
    }
}

fn writable(grant: &BucketGrant) -> Result<(), Stopped> {
    match grant.access {
        Access::ReadWrite => Ok(()),
        Access::ReadOnly => Err(Stopped::ReadOnly),
    }
}
