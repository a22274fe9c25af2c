//! Guests that reach for what was not given to them.

use crate::CaseResult;
use crate::bindings::wasi::cli::environment::{get_arguments, get_environment, initial_cwd};
use crate::bindings::wasi::keyvalue::store::open;
use crate::bindings::wasi::sockets::network::IpAddressFamily;
use crate::bindings::wasi::sockets::{
    tcp_create_socket::create_tcp_socket, udp_create_socket::create_udp_socket,
};
use plugin::tool::done;
use serde_json::Value;
use std::fs;

pub fn nothing_of_the_host_is_in_the_environment(_: &Value) -> CaseResult {
    let found = get_environment().len() + get_arguments().len() + initial_cwd().iter().count();
    let read = [
        "/",
        ".",
        "..",
        "/etc/passwd",
        "/proc/self/environ",
        "/data",
        "agent-host.json",
    ];
    let opened = read
        .iter()
        .filter(|path| {
            fs::read_dir(path).is_ok() || fs::read(path).is_ok() || fs::write(path, "x").is_ok()
        })
        .count();
    done(format!("{found} {opened}"))
}

pub fn no_socket_is_made(_: &Value) -> CaseResult {
    let families = [IpAddressFamily::Ipv4, IpAddressFamily::Ipv6];
    let made = families
        .iter()
        .filter(|family| create_tcp_socket(**family).is_ok() || create_udp_socket(**family).is_ok())
        .count();
    done(made.to_string())
}

pub fn no_bucket_opens_under_any_name(_: &Value) -> CaseResult {
    let long = "x".repeat(100_000);
    let names = [
        "",
        "*",
        ".",
        "..",
        "../other",
        "default",
        "lists",
        "a\0b",
        "a.read",
        "%2e",
        "' or 1=1 --",
        &long,
    ];
    done(
        names
            .iter()
            .filter(|name| open(name).is_ok())
            .count()
            .to_string(),
    )
}
