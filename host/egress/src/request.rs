//! What is asked of egress, and on whose behalf.

use crate::budget::ByteBudget;
use crate::record::Records;
use bytes::Bytes;
use domain::egress::Method;
use http::HeaderMap;
use std::sync::Arc;

/// On whose behalf a request is sent.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The component, or the part of the host. Requests under way are counted by it.
    pub component: String,
    /// What it may still send and receive.
    pub budget: ByteBudget,
    /// Where the records of its requests go.
    pub records: Arc<dyn Records>,
}

/// One request. Its body is whole before it is sent, so that its length is known and a redirect can repeat it.
#[derive(Debug, Clone)]
pub struct Request {
    /// On whose behalf.
    pub caller: Caller,
    /// The method.
    pub method: Method,
    /// The URL as the caller wrote it. It is read once.
    pub url: String,
    /// The headers that the caller wants. One that is not the caller's to set refuses the request.
    pub headers: HeaderMap,
    /// Headers that the host adds, such as a credential that the operator bound to this component and host. They never go along to
    /// another origin.
    pub bound: HeaderMap,
    /// The body.
    pub body: Bytes,
}
