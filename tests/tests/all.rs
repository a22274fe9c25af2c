//! The tests of the host as a whole, in one binary, because each one links the WebAssembly engine.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "these are tests: what is not there fails them")]

mod all {
    mod commits;
    mod conversation;
    mod crash;
    mod engine;
    mod http;
    mod recovery;
    mod replay;
}
