//! Putting on record which components are served, with which code and which grants, before anything runs under them.

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
        if known.get(&entry.name) == Some(&(code, grant.digest)) {
            continue;
        }
        let admitted = ComponentAdmitted { component: entry.name.clone(), code, grant: grant.digest, time };
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

/// The code and the grant that each component was recorded with last.
async fn last_admitted(core: &Core) -> Result<HashMap<String, (Digest, Digest)>, ReadError> {
    let (mut last, mut version) = (HashMap::new(), 0);
    loop {
        let events = core.store.stream(Stream::Host, version, PAGE).await?;
        let count = events.len();
        for recorded in events {
            version = recorded.version;
            if let Some(Event::ComponentAdmitted(admitted)) = recorded.event {
                last.insert(admitted.component, (admitted.code, admitted.grant));
            }
        }
        if count < PAGE {
            return Ok(last);
        }
    }
}
