//! The tests of the host as a whole, in one binary, because each one links the WebAssembly engine.

mod all {
    mod commits;
    mod conversation;
    mod crash;
    mod engine;
    mod http;
    mod recovery;
    mod replay;
}
