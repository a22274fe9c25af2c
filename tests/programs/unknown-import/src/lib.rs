//! A tool that needs what no host has.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![named("unknown")]
    }

    fn call(
        _context: CallContext,
        _name: String,
        _arguments: String,
    ) -> Result<Progress, ToolError> {
        done(bindings::acme::teleport::beam::up("now"))
    }
}

plugin::tool::export!(Program);

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package acme:needs@1.0.0;
            world needs { import acme:teleport/beam@1.0.0; }

            package acme:teleport@1.0.0 {
                interface beam { up: func(who: string) -> string; }
            }
        ",
        generate_all,
    });
}
