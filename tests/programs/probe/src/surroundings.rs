//! Everything without a handle: environment, terminals, clocks, chance, sockets, the log.

use crate::bindings::agent_host::plugin::progress::note;
use crate::bindings::wasi::logging::logging::{Level, log};
use crate::{Rows, empty, said};
use wasip2::cli::{environment, terminal_stderr, terminal_stdin, terminal_stdout};
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::random::{insecure, insecure_seed, random};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;
use wasip2::sockets::network::IpAddressFamily;
use wasip2::sockets::tcp_create_socket::create_tcp_socket;
use wasip2::sockets::udp_create_socket::create_udp_socket;

pub(crate) fn probe(rows: &mut Rows) {
    rows.say(
        "wasi:cli/environment.get-environment",
        empty(environment::get_environment().is_empty()),
    );
    rows.say(
        "wasi:cli/environment.get-arguments",
        empty(environment::get_arguments().is_empty()),
    );
    rows.say(
        "wasi:cli/environment.initial-cwd",
        empty(environment::initial_cwd().is_none()),
    );
    rows.say(
        "wasi:cli/terminal-stdin.get-terminal-stdin",
        empty(terminal_stdin::get_terminal_stdin().is_none()),
    );
    rows.say(
        "wasi:cli/terminal-stdout.get-terminal-stdout",
        empty(terminal_stdout::get_terminal_stdout().is_none()),
    );
    rows.say(
        "wasi:cli/terminal-stderr.get-terminal-stderr",
        empty(terminal_stderr::get_terminal_stderr().is_none()),
    );

    monotonic_clock::subscribe_instant(monotonic_clock::now());
    rows.say("wasi:clocks/monotonic-clock.now", "answers");
    rows.say(
        "wasi:clocks/monotonic-clock.resolution",
        empty(monotonic_clock::resolution() == 0),
    );
    rows.say("wasi:clocks/monotonic-clock.subscribe-instant", "answers");
    monotonic_clock::subscribe_duration(1);
    rows.say("wasi:clocks/monotonic-clock.subscribe-duration", "answers");
    rows.say(
        "wasi:clocks/wall-clock.now",
        empty(wall_clock::now().seconds == 0),
    );
    rows.say(
        "wasi:clocks/wall-clock.resolution",
        empty(wall_clock::resolution().nanoseconds == 0),
    );

    rows.say(
        "wasi:random/random.get-random-bytes",
        empty(random::get_random_bytes(16) == [0; 16]),
    );
    rows.say(
        "wasi:random/random.get-random-u64",
        empty(random::get_random_u64() == 0),
    );
    rows.say(
        "wasi:random/insecure.get-insecure-random-bytes",
        empty(insecure::get_insecure_random_bytes(16) == [0; 16]),
    );
    rows.say(
        "wasi:random/insecure.get-insecure-random-u64",
        empty(insecure::get_insecure_random_u64() == 0),
    );
    rows.say(
        "wasi:random/insecure-seed.insecure-seed",
        empty(insecure_seed::insecure_seed() == (0, 0)),
    );

    let network = instance_network();
    rows.say("wasi:sockets/instance-network.instance-network", "answers");
    rows.say(
        "wasi:sockets/ip-name-lookup.resolve-addresses",
        said(&resolve_addresses(&network, "localhost")),
    );
    rows.say(
        "wasi:sockets/tcp-create-socket.create-tcp-socket",
        said(&create_tcp_socket(IpAddressFamily::Ipv4)),
    );
    rows.say(
        "wasi:sockets/udp-create-socket.create-udp-socket",
        said(&create_udp_socket(IpAddressFamily::Ipv4)),
    );

    log(Level::Info, "probe", "every function once");
    rows.say("wasi:logging/logging.log", "answers");
    note("every function once");
    rows.say("agent-host:plugin/progress.note", "answers");
}
