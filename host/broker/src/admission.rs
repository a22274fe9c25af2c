//! The record of the components that are served, each with its code and its grant.
//!
//! Admissions are committed before any component runs under them. A component whose code or
//! description has changed under its name while the host did not run is reported, unless its code
//! is pinned.

use crate::catalogue::Entry;
use crate::core::Core;
use crate::journal::Context;
use crate::serving::Served;
use crate::shared::Error;
use domain::digest::Digest;
use domain::event::{ComponentAdmitted, Event};
use domain::id::Stream;
use std::collections::HashMap;
use store::{Commit, Expected, ReadError};

/// The trigger event on which components are admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AdmissionReason {
    /// The host starts: a file may have changed while it did not run.
    Start,
    /// Other code is served on request.
    Replacement,
}

/// Records every component about to be served whose code, description or grant differs from its
/// last record, together with the record of the change that caused it.
pub(crate) async fn admit(
    core: &Core,
    served: &Served,
    reason: AdmissionReason,
    change: Option<Event>,
) -> Result<(), Error> {
    let known = last_admitted(core, served).await?;
    let time = core.now();
    let context = Context::new("host", time);
    let mut events = Vec::new();
    let mut blobs = Vec::new();
    for entry in served.catalogue.entries() {
        let Some(grant) = served.resolved_configs.grant(&entry.name) else {
            continue;
        };
        let code = entry.component.digest();
        let described = described(entry)?;
        let before = known.get(&entry.name);
        let is_same =
            before.is_some_and(|before| before.code == code && before.described == described);
        if is_same && before.is_some_and(|before| before.grant == grant.digest) {
            continue;
        }
        let replaces = before
            .filter(|_| !entry.is_pinned)
            .and_then(|before| replaced(before, code, is_same));
        if let Some(before) = replaces
            && !is_same
            && matches!(reason, AdmissionReason::Start)
        {
            tracing::warn!(
                component = %entry.name, code = %code.reference(), before = %before.reference(),
                "a component is not the one that was admitted under this name before, and gets the \
                 same grant: look at it, and pin it with \
                 `sha256` so that no other is loaded"
            );
        }
        let admitted = ComponentAdmitted {
            component: entry.name.clone(),
            code,
            version: entry.component.version().map(str::to_owned),
            grant: grant.digest,
            described,
            replaces,
            time,
        };
        events.push(context.event(Event::ComponentAdmitted(admitted)));
        blobs.push(grant.bytes.to_vec());
    }
    events.extend(change.map(|change| context.event(change)));
    if events.is_empty() {
        return Ok(());
    }
    let mut commit = Commit::new().append(Stream::Host, Expected::Any, events);
    commit.blobs = blobs;
    core.store.commit(commit).await?;
    Ok(())
}

/// Returns the code that this code replaced, by the last record of a component without a pin.
/// Another grant or another description of the same code is no reason for a review: the code named
/// in the last record is named again.
fn replaced(before: &ComponentAdmitted, code: Digest, is_same: bool) -> Option<Digest> {
    if before.code != code {
        return Some(before.code);
    }
    let named = before.replaces.filter(|named| *named != code);
    named.or_else(|| (!is_same).then_some(code))
}

/// Returns the digest of a component's description of itself.
fn described(entry: &Entry) -> Result<Digest, Error> {
    serde_json::to_vec(entry.component.describes())
        .map(|bytes| Digest::of(&bytes))
        .map_err(Error::unavailable)
}

/// Returns the last record of each component that is served, by its name.
async fn last_admitted(
    core: &Core,
    served: &Served,
) -> Result<HashMap<String, ComponentAdmitted>, ReadError> {
    let names = served
        .catalogue
        .entries()
        .map(|entry| entry.name.clone())
        .collect();
    let last = core.store.last_admissions(names).await?;
    Ok(last
        .into_iter()
        .map(|admitted| (admitted.component.clone(), admitted))
        .collect())
}
