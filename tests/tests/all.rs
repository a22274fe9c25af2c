//! The tests of the host as a whole, in one binary, because each one links the WebAssembly engine.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "these are tests: what is not there fails them"
)]

mod all {
    mod account;
    mod aggregate;
    mod approvals;
    mod attacks;
    mod bad_input;
    mod boundary;
    mod budget;
    mod chat;
    mod clients;
    mod clock;
    mod coding;
    mod command_line;
    mod compaction;
    mod compiling;
    mod configuration;
    mod connectors;
    mod conversation;
    mod crash;
    mod cut_off;
    mod delegation;
    mod demo;
    mod described;
    mod dev;
    mod direct_messages;
    mod disk;
    mod dispatch;
    mod engine;
    mod event_source;
    mod exhaustion;
    mod external;
    mod faults;
    mod first_configuration;
    mod frozen;
    mod garbage;
    mod gateway;
    mod guide;
    mod half_streams;
    mod http;
    mod identity;
    mod importing;
    mod key_storage;
    mod keyvalue;
    mod lasting;
    mod ledger;
    mod lists;
    mod manifest;
    mod memory;
    mod mistakes;
    mod narrowing;
    mod network;
    mod new_project;
    mod once;
    mod operator;
    mod owned_folders;
    mod paging;
    mod panics;
    mod paths;
    mod patterns;
    mod people;
    mod plugin_test;
    mod poison;
    mod prompts;
    mod purge;
    mod purity;
    mod queue;
    mod quota;
    mod races;
    mod reading;
    mod recovery;
    mod reload;
    mod replay;
    mod researcher;
    mod restoring;
    mod routing;
    mod same_moment;
    mod schemas;
    mod secrets;
    mod sessions;
    mod sharing;
    mod skills;
    mod spill;
    mod storm;
    mod structured;
    mod switching;
    mod targets;
    mod tasks;
    mod telemetry;
    mod torture;
    mod triggers;
    mod unstorable;
    mod uploads;
    mod waking;
    mod web;
    mod web_search;
    mod worker;
}
