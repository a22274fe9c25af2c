//! Secrets in a guest's requests: here a placeholder becomes a credential, and nowhere else.
//!
//! The rules are [`domain::egress::placements`]. The value goes into the request's credentials,
//! which egress writes to the wire; the guest, the audit record and the log know its name.

use domain::egress::{Misplaced, placements};
use domain::grant::{SecretGrant, SecretSlot};
use domain::redact::Redactor;
use domain::secret::Secrets;
use egress::Credentials;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;

/// The secrets that one call is bound to.
#[derive(Debug, Clone, Default)]
pub(crate) struct BoundSecrets {
    grants: Arc<[SecretGrant]>,
    values: Secrets,
}

impl BoundSecrets {
    pub(crate) fn new(grants: &[SecretGrant], values: Secrets) -> Self {
        Self {
            grants: grants.into(),
            values,
        }
    }

    /// Returns the redactor that removes secrets from everything that comes back. It knows not only
    /// those of the call, as what one call sent may come back to another.
    pub(crate) fn redactor(&self) -> Redactor {
        self.values.redactor().clone()
    }

    /// The headers that a guest may write because secrets go there.
    pub(crate) fn headers(&self) -> Arc<[HeaderName]> {
        let names = self.grants.iter().filter_map(|grant| match &grant.slot {
            SecretSlot::Header(name) => HeaderName::from_bytes(name.as_bytes()).ok(),
            SecretSlot::Query(_) | SecretSlot::Path(_) => None,
        });
        names.collect()
    }

    /// Takes the placeholders out of the headers. Returns the credentials for their place and the
    /// query's, and the grants for them.
    ///
    /// # Errors
    /// A placeholder stands where none is bound, or a slot has something else in it.
    pub(crate) fn credentials(
        &self,
        url: &str,
        headers: &mut HeaderMap,
    ) -> Result<(Credentials, Vec<&SecretGrant>), Misplaced> {
        let written: Vec<(&str, &[u8])> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let placed = placements(url, &written, &self.grants)?;
        let mut credentials = Credentials::default();
        for grant in &placed {
            let unknown = || Misplaced::Unknown {
                secret: grant.secret.clone(),
            };
            let value = self
                .values
                .get(&grant.secret)
                .ok_or_else(unknown)?
                .behind(&grant.prefix);
            match &grant.slot {
                SecretSlot::Query(name) => credentials.parameter(name.clone(), value),
                SecretSlot::Path(beginning) => {
                    credentials.path_part(beginning.clone(), grant.placeholder_in_path(), value);
                }
                SecretSlot::Header(name) => {
                    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unknown())?;
                    headers.remove(&name);
                    credentials.header(
                        name,
                        HeaderValue::from_str(value.expose()).map_err(|_| unknown())?,
                    );
                }
            }
        }
        Ok((credentials, placed))
    }
}

/// Describes a use of a secret, as the audit record has it: with the port that the grant names.
pub(crate) fn describe_use(grant: &SecretGrant) -> String {
    let (slot, name) = match &grant.slot {
        SecretSlot::Header(name) => ("header", name),
        SecretSlot::Query(name) => ("query", name),
        SecretSlot::Path(beginning) => ("path", beginning),
    };
    let port = grant
        .port
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    format!("{} -> {}{port} {slot} {name}", grant.secret, grant.host)
}
