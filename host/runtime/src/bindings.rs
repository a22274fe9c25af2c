//! The output of `bindgen!` for the WIT files: the types and traits at the boundary. Only the
//! conversions, the exports and the host functions use it.
//!
//! Agents, tools and what they import are the same in both versions of the interface, but for
//! their names. So there is one set of types for both; `host/link.rs` and `exports.rs` know the
//! names.

/// The world of agents, and what all worlds share.
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

/// The world of triggers.
pub(crate) mod trigger {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "trigger-plugin",
        imports: { default: trappable },
        exports: { default: async },
        with: {
            "agent-host:plugin/types": crate::bindings::agent::agent_host::plugin::types,
            "wasi:logging/logging": crate::bindings::agent::wasi::logging::logging,
        },
        require_store_data_send: true,
    });
}

/// The world of connectors.
pub(crate) mod connector {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "connector-plugin",
        imports: { default: trappable },
        exports: { default: async },
        with: {
            "agent-host:plugin/types": crate::bindings::agent::agent_host::plugin::types,
            "wasi:logging/logging": crate::bindings::agent::wasi::logging::logging,
        },
        require_store_data_send: true,
    });
}

/// The world of triggers as it was in version 0.1.0.
pub(crate) mod trigger_0_1 {
    wasmtime::component::bindgen!({
        path: "../../wit/frozen/0.1.0",
        world: "trigger-plugin",
        imports: { default: trappable },
        exports: { default: async },
        with: {
            "agent-host:plugin/types": crate::bindings::agent::agent_host::plugin::types,
            "wasi:logging/logging": crate::bindings::agent::wasi::logging::logging,
        },
        require_store_data_send: true,
    });
}

/// The world of connectors as it was in version 0.1.0.
pub(crate) mod connector_0_1 {
    wasmtime::component::bindgen!({
        path: "../../wit/frozen/0.1.0",
        world: "connector-plugin",
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
