//! Putting on record which components are served, with which code and which grants, before anything runs under them. One that is not what
//! it was under its name is told of, unless its code is pinned.

use crate::catalogue::Entry;
use crate::command::Error;
use crate::core::Core;
use crate::journal::Context;
use domain::digest::Digest;
use domain::event::{ComponentAdmitted, Event};
use domain::id::Stream;
use std::collections::HashMap;
use store::{Commit, Expected, ReadError};

/// Events that are read at a time.
const PAGE: usize = 1_000;

/// Records every component whose code or grant is not what was recorded of it last.
pub(crate) async fn admit(core: &Core) -> Result<(), Error> {
    let known = last_admitted(core).await.map_err(Error::unavailable)?;
    let time = core.now();
    let context = Context::new("host", time);
    let (mut events, mut blobs) = (Vec::new(), Vec::new());
    for entry in core.catalogue.entries() {
        let Some(grant) = core.outfits.grant(&entry.name) else { continue };
        let code = entry.component.digest();
        let described = described(entry)?;
        let before = known.get(&entry.name);
        let is_same = |before: &&Admitted| before.code == code && before.described.is_none_or(|before| before == described);
        if before.filter(is_same).is_some_and(|before| before.grant == grant.digest) {
            continue;
        }
        let replaces = before.filter(|before| !is_same(before) && !entry.is_pinned).map(|before| before.code);
        if let Some(before) = replaces {
            tracing::warn!(
                component = %entry.name, code = %code.reference(), before = %before.reference(),
                "a component is not the one that was admitted under this name before, and gets the same grant: look at it, and pin it with \
                 `sha256` so that no other is loaded"
            );
        }
        let admitted =
            ComponentAdmitted { component: entry.name.clone(), code, grant: grant.digest, described: Some(described), replaces, time };
        events.push(context.event(Event::ComponentAdmitted(admitted)));
        blobs.push(grant.bytes.to_vec());
    }
    if events.is_empty() {
        return Ok(());
    }
    let mut commit = Commit::new().append(Stream::Host, Expected::Any, events);
    commit.blobs = blobs;
    core.store.commit(commit).await.map(drop).map_err(Error::unavailable)
}

/// The digest of what a component says of itself.
fn described(entry: &Entry) -> Result<Digest, Error> {
    serde_json::to_vec(entry.component.describes()).map(|bytes| Digest::of(&bytes)).map_err(Error::unavailable)
}

/// The record of a component as it was admitted.
struct Admitted {
    code: Digest,
    grant: Digest,
    described: Option<Digest>,
}

/// Returns the newest record of each component, by its name.
async fn last_admitted(core: &Core) -> Result<HashMap<String, Admitted>, ReadError> {
    let (mut last, mut version) = (HashMap::new(), 0);
    loop {
        let events = core.store.stream(Stream::Host, version, PAGE).await?;
        let count = events.len();
        for recorded in events {
            version = recorded.version;
            if let Some(Event::ComponentAdmitted(admitted)) = recorded.event {
                let ComponentAdmitted { component, code, grant, described, .. } = admitted;
                last.insert(component, Admitted { code, grant, described });
            }
        }
        if count < PAGE {
            return Ok(last);
        }
    }
}
