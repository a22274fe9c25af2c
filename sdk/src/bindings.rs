//! The bindings that wit-bindgen makes from `wit/`: of the four worlds, and of buckets.
//!
//! A type that is the same for authors is re-exported where it belongs. Where JSON or another form
//! is handier, the SDK has its own type, and [`wire`](crate::wire) converts.

/// The imports and exports of an agent component.
pub mod agent_plugin {
    wit_bindgen::generate!({
        path: "../wit",
        world: "agent-host:plugin/agent-plugin",
        pub_export_macro: true,
        export_macro_name: "export_agent_plugin",
        additional_derives: [PartialEq, Eq],
        generate_all,
    });
}

/// The imports and exports of a tool component.
pub mod tool_plugin {
    wit_bindgen::generate!({
        path: "../wit",
        world: "agent-host:plugin/tool-plugin",
        pub_export_macro: true,
        export_macro_name: "export_tool_plugin",
        with: {
            "agent-host:plugin/types@0.2.0":
                crate::bindings::agent_plugin::agent_host::plugin::types,
            "wasi:logging/logging@0.1.0-draft":
                crate::bindings::agent_plugin::wasi::logging::logging,
        },
        generate_all,
    });
}

/// The imports and exports of a trigger component.
pub mod trigger_plugin {
    wit_bindgen::generate!({
        path: "../wit",
        world: "agent-host:plugin/trigger-plugin",
        pub_export_macro: true,
        export_macro_name: "export_trigger_plugin",
        additional_derives: [PartialEq, Eq],
        with: {
            "agent-host:plugin/types@0.2.0":
                crate::bindings::agent_plugin::agent_host::plugin::types,
            "wasi:logging/logging@0.1.0-draft":
                crate::bindings::agent_plugin::wasi::logging::logging,
        },
        generate_all,
    });
}

/// The imports and exports of a connector component.
pub mod connector_plugin {
    wit_bindgen::generate!({
        path: "../wit",
        world: "agent-host:plugin/connector-plugin",
        pub_export_macro: true,
        export_macro_name: "export_connector_plugin",
        additional_derives: [PartialEq, Eq],
        additional_type_attributes: {
            "agent-host:plugin/connector@0.2.0/batch": [#[derive(Default)]],
            "agent-host:plugin/connector@0.2.0/incoming-call": [#[derive(Default)]],
        },
        with: {
            "agent-host:plugin/types@0.2.0":
                crate::bindings::agent_plugin::agent_host::plugin::types,
            "wasi:logging/logging@0.1.0-draft":
                crate::bindings::agent_plugin::wasi::logging::logging,
        },
        generate_all,
    });
}

/// The additional imports of a component that keeps data between calls.
pub mod keyvalue {
    wit_bindgen::generate!({
        path: "../wit/deps/keyvalue",
        world: "wasi:keyvalue/imports",
        generate_all,
    });
}
