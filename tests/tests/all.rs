//! The tests of the host as a whole, in one binary, because each one links the WebAssembly engine.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "these are tests: what is not there fails them")]

mod all {
    mod account;
    mod commits;
    mod compiling;
    mod conversation;
    mod crash;
    mod dispatch;
    mod engine;
    mod exhaustion;
    mod garbage;
    mod http;
    mod outfit;
    mod races;
    mod recovery;
    mod replay;
    mod spill;
}
