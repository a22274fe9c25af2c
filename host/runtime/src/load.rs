//! From bytes to something that can be linked: what is refused, why, and what would help.

mod foreign;

use crate::call::CallState;
use crate::exports::{Export, PACKAGE, World};
use crate::host::link::is_known;
use wasmparser::{Chunk, Parser, Payload};
use wasmtime::Engine;
use wasmtime::component::{Component as Code, Linker};

/// The reason that a component was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It has too many bytes.
    #[error(
        "the component is {size} bytes long; {max} at most: build it with opt-level `s` and \
             strip it"
    )]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The largest size allowed.
        max: usize,
    },
    /// The bytes are something else.
    #[error(
        "this is not a WebAssembly component but {found}: build it with `cargo build --target \
             wasm32-wasip2`"
    )]
    NotAComponent {
        /// A description of what the bytes look like.
        found: &'static str,
    },
    /// The bytes end too early.
    #[error("the component is cut short after {size} bytes: copy or build it again")]
    Truncated {
        /// Number of bytes.
        size: usize,
    },
    /// It is not valid, or uses a feature of WebAssembly that this host leaves out.
    #[error("the component cannot be compiled")]
    Invalid(#[source] wasmtime::Error),
    /// It takes too long to compile.
    #[error(
        "the component was not compiled within {limit_ms} ms: build it with opt-level `s`, \
             strip it, or make several of it"
    )]
    CompileTimedOut {
        /// The time limit, in milliseconds.
        limit_ms: u64,
    },
    /// The process that compiled it ended without a result.
    #[error(
        "the compiler did not survive the component ({how}): it takes more memory or computing \
             time than compiling may take"
    )]
    CompilerEnded {
        /// The way in which it ended.
        how: String,
    },
    /// It imports what this host does not define at all.
    #[error(
        "the component imports what this host does not have: {}; {}",
        names.join(", "),
        foreign::imports(names)
    )]
    UnknownImports {
        /// The imports.
        names: Vec<String>,
    },
    /// It imports an interface of this host in another shape.
    #[error(
        "the component imports an interface in another shape than this host's: build it \
             against the WIT files of this host"
    )]
    Incompatible(#[source] wasmtime::Error),
    /// It exports no interface of a plugin.
    #[error(
        "the component exports none of `agent`, `tools`, `trigger` and `connector` of `{PACKAGE}` \
             but {}: {}",
        if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") },
        foreign::exports(exports)
    )]
    NoWorld {
        /// Its exports.
        exports: Vec<String>,
    },
    /// It exports interfaces of several plugins, or one in several versions.
    #[error("the component exports `{}`: make a component of each", exports.join("` and `"))]
    SeveralWorlds {
        /// The exports that make it a plugin.
        exports: Vec<String>,
    },
    /// `describe` trapped.
    #[error("the component trapped in `describe`, which gets no capability at all: {message}")]
    DescribeTrapped {
        /// The message of wasmtime and the guest.
        message: String,
    },
    /// `describe` met a limit.
    #[error("the component's `describe` {limit}")]
    DescribeStopped {
        /// The limit.
        limit: &'static str,
    },
    /// The result of `describe` is not acceptable.
    #[error("the component's `describe` returned what is not acceptable: {detail}")]
    DescribeRefused {
        /// The field, and the reason.
        detail: String,
    },
    /// Too many calls are under way. The same again may succeed.
    #[error("the host is too busy to load the component: try again")]
    Busy,
    /// The host could not do its part.
    #[error("the host could not load the component: {detail}")]
    Faulted {
        /// The host's failure.
        detail: String,
    },
}

/// Refuses what is not a whole component, before any of it is compiled. What else is wrong with it,
/// the compiler says.
pub(crate) fn inspect(wasm: &[u8]) -> Result<(), LoadError> {
    if !Parser::is_component(wasm) {
        return Err(LoadError::NotAComponent { found: kind(wasm) });
    }
    let truncated = || LoadError::Truncated { size: wasm.len() };
    let mut parser = Parser::new(0);
    let mut rest = wasm;
    while !rest.is_empty() {
        let (skipped, payload) = match parser.parse(rest, false) {
            Ok(Chunk::Parsed { consumed, payload }) => (consumed, payload),
            Ok(Chunk::NeedMoreData(_)) => return Err(truncated()),
            Err(_) => return Ok(()),
        };
        // Modules and components inside are skipped whole.
        let inside = match payload {
            Payload::ModuleSection {
                unchecked_range, ..
            }
            | Payload::ComponentSection {
                unchecked_range, ..
            } => unchecked_range.len(),
            _ => 0,
        };
        rest = rest
            .get(skipped.saturating_add(inside)..)
            .ok_or_else(truncated)?;
    }
    Ok(())
}

fn kind(bytes: &[u8]) -> &'static str {
    match bytes {
        [] => "an empty file",
        _ if Parser::is_core_wasm(bytes) => "a core module",
        [0x7f, b'E', b'L', b'F', ..] => "machine code, which is never taken from outside",
        [b'(', ..] => "text",
        [0, b'a', b's', b'm', ..] => "an unknown version of WebAssembly",
        _ => "something that does not begin like WebAssembly",
    }
}

/// Compiled code with its imports linked.
pub(crate) struct Linked {
    pub(crate) world: World,
    /// The version of the interface that it exports.
    pub(crate) wit_version: &'static str,
    /// The names of its imports.
    pub(crate) imports: Vec<String>,
}

/// Links the imports of compiled code, and finds its exports.
pub(crate) fn link(
    engine: &Engine,
    linker: &Linker<CallState>,
    code: &Code,
) -> Result<Linked, LoadError> {
    let about = code.component_type();
    let imports: Vec<String> = about
        .imports(engine)
        .map(|(name, _)| name.to_owned())
        .collect();
    let unknown: Vec<String> = imports
        .iter()
        .filter(|name| !is_known(name))
        .cloned()
        .collect();
    if !unknown.is_empty() {
        return Err(LoadError::UnknownImports { names: unknown });
    }
    let exports: Vec<String> = about
        .exports(engine)
        .map(|(name, _)| name.to_owned())
        .collect();
    let pre = linker
        .instantiate_pre(code)
        .map_err(LoadError::Incompatible)?;
    let found: Vec<Export> = exports
        .iter()
        .filter_map(|name| Export::parse(name))
        .collect();
    let export = match found.as_slice() {
        [] => return Err(LoadError::NoWorld { exports }),
        [export] => export,
        [..] => {
            let exports = found.iter().map(Export::to_string).collect();
            return Err(LoadError::SeveralWorlds { exports });
        }
    };
    Ok(Linked {
        world: World::find(&pre, export).map_err(LoadError::Incompatible)?,
        wit_version: export.version.as_str(),
        imports,
    })
}
