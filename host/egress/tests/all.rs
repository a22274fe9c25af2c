//! Egress through its public boundary, against servers on loopback that do what no honest server
//! does.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

#[path = "all/asking.rs"]
mod asking;
#[path = "all/fixture.rs"]
mod fixture;
#[path = "all/fuzz.rs"]
mod fuzz;
#[path = "all/hostile.rs"]
mod hostile;
#[path = "all/keeping.rs"]
mod keeping;
#[path = "all/lasting.rs"]
mod lasting;
#[path = "all/redirecting.rs"]
mod redirecting;
#[path = "all/reflecting.rs"]
mod reflecting;
#[path = "all/tls.rs"]
mod tls;
