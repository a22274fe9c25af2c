//! A call of a connector, as the edge asks for it, and its result.

use crate::call_audit::CallAudit;
use crate::component::Component;
use crate::log::LogLine;
use crate::outcome::Outcome;
use domain::connector::ConnectorFailure;
use domain::grant::Grant;
use domain::operation::CallUsage;
use serde_json::Value;

/// A connector that is called, and what its call may use.
#[derive(Debug, Clone, Copy)]
pub struct ConnectorCall<'a> {
    /// Its component.
    pub component: &'a Component,
    /// The grant: requests, secrets as placeholders, variables, and limits. Folders and buckets are
    /// for tools.
    pub grant: &'a Grant,
    /// The operator's configuration: an object that fits the component's schema.
    pub configuration: &'a Value,
    /// Milliseconds that the call may take; the grant's limit applies when it is shorter.
    pub deadline_ms: u32,
    /// The caller's call audit: if the call is cut off, everything until then is in it.
    pub audit: &'a CallAudit,
}

/// A call of the service whose signature was verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifiedCall {
    /// Its headers without credentials, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its query, decoded, without credentials.
    pub query: Vec<(String, String)>,
    /// Its body as received.
    pub body: Vec<u8>,
}

/// The result of a connector's call, beside what is in its call audit.
#[derive(Debug, Clone)]
pub struct Connected<T> {
    /// Its outcome. An error of the connector's own is `Returned(Err(_))`.
    pub outcome: Outcome<Result<T, ConnectorFailure>>,
    /// Its usage.
    pub usage: CallUsage,
    /// Its log, stdout and stderr included.
    pub logs: Vec<LogLine>,
}
