//! `demo-site <folder> <address>`: serves the pages of a folder until its input ends.
//!
//! `./x demo` keeps the other end of its input open for as long as the host lives, so that the site
//! goes with the host however that ends.

use agent_host_demo_site::Site;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Attempts to listen: the site of a demo before this one may still be ending.
const ATTEMPTS: u32 = 20;
/// Pause between two of them.
const PAUSE: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            // Nobody is left to be told when this fails.
            let _ = writeln!(io::stderr(), "demo-site: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, address] = arguments.as_slice() else {
        return Err("usage: demo-site <folder> <address>".to_owned());
    };
    let site = Site::read(Path::new(folder))
        .map_err(|error| format!("the pages in `{folder}` cannot be read: {error}"))?;
    let listener = listen(address).map_err(|error| {
        format!("there is no site on {address}, and a research finds nothing: {error}")
    })?;
    thread::spawn(move || site.serve(&listener));
    io::copy(&mut io::stdin().lock(), &mut io::sink())
        .map(|_| ())
        .map_err(|error| format!("its input cannot be read: {error}"))
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let mut attempt = 1;
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempt < ATTEMPTS => {
                attempt += 1;
                thread::sleep(PAUSE);
            }
            bound => return bound,
        }
    }
}
