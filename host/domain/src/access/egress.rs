//! Egress: the permitted destinations of a component's HTTP requests, and the addresses that are
//! never dialled.
//!
//! The steps are, in this order: [`Target::parse`] turns a URL into the value that is checked and
//! dialled, and [`permit`] finds the grant that allows it. The name is resolved once, outside this
//! module, and [`Permit::admits`] judges each resolved address. The header rules decide which
//! headers the request may have. All later steps use the [`Target`] and never the original text.

mod address;
mod grant;
mod header;
mod host;
mod path;
mod permit;
mod placeholder;
mod request_target;
mod traffic;

pub use address::{
    AddressRange, AddressRangeError, Reach, classify, embedded_v4, metadata, special_ranges,
};
pub use grant::{EgressGrant, GrantError, RequestLimits, ceiling};
pub use header::{
    CREDENTIALS, RequestHeader, crosses_origins, divides_echo, request_header, response_header,
    shows_ascii, trailer,
};
pub use host::{Host, HostError, HostPattern, HostPatternError};
pub use path::{PathPattern, PathPatternError};
pub use permit::{Barred, Denied, Mismatch, Permit, permit};
pub(crate) use placeholder::DECODINGS_MAX;
pub use placeholder::{Misplaced, placements};
pub use request_target::{Method, NotAMethod, Scheme, Target, TargetError, URL_BYTES_MAX};
pub use traffic::{HOP_KINDS_MAX, HOPS_RECORDED_MAX, Hop, OUTCOMES, Traffic};
