//! The slots in which placeholders for secrets stood.

use domain::grant::{SecretGrant, SecretSlot};

/// The slot in which a placeholder stood: the host, and its place there.
pub(super) type Slot = (String, SecretSlot);

/// A host, and the port if one is written behind it.
pub(super) fn at_port(written: &str) -> (&str, Option<u16>) {
    let parts = written
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    parts
        .and_then(|(host, port)| Some((host, Some(port.parse().ok()?))))
        .unwrap_or((written, None))
}

/// Reads host and slot of a placeholder from the detail in the ledger: its place, or the place that
/// the secret went to.
pub(super) fn slot(detail: &str) -> Option<Slot> {
    if let Some((_, went)) = detail.split_once(" -> ") {
        let [host, kind, name] = went.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let slot = match kind {
            "header" => SecretSlot::Header(name.to_owned()),
            "path" => SecretSlot::Path(name.to_owned()),
            _ => SecretSlot::Query(name.to_owned()),
        };
        return Some((host.to_owned(), slot));
    }
    let is_header = detail.contains(" in the header ");
    let mut quoted = detail.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    let host = quoted.next()?;
    let slot = if is_header {
        SecretSlot::Header(name.to_owned())
    } else {
        SecretSlot::Query(name.to_owned())
    };
    Some((host.to_owned(), slot))
}

/// Returns the grant of a secret for a slot, whose name the operator chooses.
pub(super) fn secret_in(slot: &Slot) -> SecretGrant {
    let (host, slot) = slot;
    let (host, port) = at_port(host);
    SecretGrant {
        secret: "name".to_owned(),
        host: host.to_owned(),
        port,
        slot: slot.clone(),
        prefix: String::new(),
    }
}
