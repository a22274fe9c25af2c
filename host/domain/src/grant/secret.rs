//! Secrets: which of the operator's secrets the host puts where in a component's requests. Values are never here.

use crate::egress::Host;
use serde::{Deserialize, Serialize};

/// The one place in a request that a secret goes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SecretSlot {
    /// The value of this header, such as `authorization`.
    Header(String),
    /// The value of this parameter of the query.
    Query(String),
}

/// A secret that is bound to a component, one host and one slot. The component names it as `{{secret.<name>}}`, and never has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretGrant {
    /// Its name in the config's `secrets`.
    pub secret: String,
    /// The host, exactly, such as `api.example.com`.
    pub host: String,
    /// Where it goes.
    pub slot: SecretSlot,
    /// What stands before it in the slot, such as `Bearer `.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

impl SecretGrant {
    /// What a component writes where the secret is to be.
    #[must_use]
    pub fn placeholder(&self) -> String {
        format!("{{{{secret.{}}}}}", self.secret)
    }

    /// Whether it is bound to this host.
    #[must_use]
    pub fn is_for(&self, host: &Host) -> bool {
        host.to_string().eq_ignore_ascii_case(&self.host)
    }
}
