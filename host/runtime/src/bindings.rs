//! The output of `bindgen!` for the WIT files: the types and traits at the boundary. Only the
//! conversions and the host functions use it.

/// The world of agents, and what both worlds share.
pub(crate) mod agent {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "agent-plugin",
        imports: {
            "agent-host:plugin/turn.[method]view.message": async | trappable,
            "agent-host:plugin/turn.[method]view.read-blob": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        with: {
            "agent-host:plugin/turn.view": crate::host::turn::step_view::ViewHandle,
        },
        require_store_data_send: true,
    });
}

/// The world of tools.
pub(crate) mod tool {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "tool-plugin",
        imports: { default: trappable },
        exports: { default: async },
        with: {
            "agent-host:plugin/types": crate::bindings::agent::agent_host::plugin::types,
            "wasi:logging/logging": crate::bindings::agent::wasi::logging::logging,
        },
        require_store_data_send: true,
    });
}

/// The key-value interfaces.
pub(crate) mod keyvalue {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "wasi:keyvalue/imports",
        imports: { default: async | trappable },
        with: {
            "wasi:keyvalue/store.bucket": crate::host::keyvalue::write_overlay::Bucket,
        },
        require_store_data_send: true,
    });
}
