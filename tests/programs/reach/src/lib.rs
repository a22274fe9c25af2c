//! A tool that reaches for what nobody granted, and says how it was refused.

use bindings::wasi::http::outgoing_handler::handle;
use bindings::wasi::http::types::{Fields, OutgoingRequest};
use bindings::wasi::sockets::network::IpAddressFamily;
use bindings::wasi::sockets::tcp_create_socket::create_tcp_socket;
use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![named("reach")]
    }

    fn call(_context: CallContext, _name: String, _arguments: String) -> Result<Progress, ToolError> {
        let bucket = bindings::wasi::keyvalue::store::open("secrets").err();
        let socket = create_tcp_socket(IpAddressFamily::Ipv4).err();
        let home = std::env::vars().count() + std::env::args().count();
        let folder = std::fs::read_dir("/").is_err();
        done(format!("{bucket:?} | {socket:?} | {home} | {folder} | {}", request()))
    }
}

plugin::tool::export!(Program);

fn request() -> String {
    let request = OutgoingRequest::new(Fields::new());
    let addressed = request.set_authority(Some("169.254.169.254")).and(request.set_path_with_query(Some("/")));
    match handle(request, None) {
        Err(error) => format!("not sent: {addressed:?} {error:?}"),
        Ok(response) => {
            response.subscribe().block();
            match response.get() {
                Some(Ok(Err(error))) => format!("{error:?}"),
                other => format!("{}", other.is_some()),
            }
        }
    }
}

mod bindings {
    wit_bindgen::generate!({ path: ["../../../wit/deps/keyvalue", "wit"], world: "test:reach/reach", generate_all });
}
