//! The commands for authors of plugins: `new` and `plugin`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The help below the options of `plugin stamp`.
pub(crate) const STAMP_HELP: &str = concat!(
    "Takes no host and no configuration, and runs nothing of the component. A manifest that the ",
    "component carries already is replaced. A component in Rust has one from its `Cargo.toml` and ",
    "`export_tools!`.",
    r#"

Example:
  agent-host plugin stamp word-count.wasm --manifest manifest.json

A manifest with every field, of which only `manifest` must be there:
  {
    "manifest": 1,
    "version": "0.1.0",
    "authors": ["Ann <ann@example.com>"],
    "licence": "Apache-2.0",
    "homepage": "https://example.com/word-count",
    "wants": {
      "hosts": [
        { "host": "api.example.com", "methods": ["GET", "POST"], "reason": "looks words up" }
      ],
      "folders": [
        { "at": "/workspace", "access": "read-only", "reason": "counts in files" }
      ],
      "buckets": [
        { "bucket": "counts", "access": "read-write", "reason": "keeps totals" }
      ],
      "secrets": [
        { "secret": "words", "host": "api.example.com", "header": "authorization",
          "prefix": "Bearer ", "reason": "signs in" }
      ]
    }
  }

`wants` grants nothing: `agent-host component check` shows the lines that would."#
);

/// The project to make.
#[derive(Debug, Args)]
pub(crate) struct New {
    /// The kind of plugin
    #[arg(value_enum)]
    pub(crate) kind: Kind,
    /// The project's name, and its folder's: 1 to 64 of a-z, 0-9, - and _, a letter first
    pub(crate) name: String,
    /// The language
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    pub(crate) lang: Language,
}

/// The kinds of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Decides what happens next in a conversation
    Agent,
    /// Offers tools that agents call
    Tool,
    /// Speaks to agents when something happens: a time, a webhook call, files, events; in Rust
    Trigger,
    /// Lets people at a messaging service talk with agents; in Rust
    Connector,
}

/// The languages that a project can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// With the SDK; tested with `cargo test`
    Rust,
    /// With componentize-py
    Python,
    /// With componentize-qjs for tools and componentize-js for agents
    #[value(alias = "javascript")]
    Js,
    /// With clang, and bindings that are generated already
    C,
}

/// Commands about plugins that are being written.
#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Test a component as a host would load and call it, and print what is wrong, where, and the
    /// fix
    #[command(
        after_help = "Takes no host and no configuration. A tool is called with arguments that fit \
                      its schema and with some that do not; an agent is stepped through short \
                      scripted conversations, each step twice; a trigger hears a trigger_event of \
                      every kind that it lists, twice; a connector is called while its service \
                      is out of reach. A call gets a temporary folder, \
                      buckets that last as long as it does, and no network: its requests are \
                      refused. Exits with 1 on errors.\n\n\
        Examples:\n  agent-host plugin test target/wasm32-wasip2/release/word_count.wasm\n  \
        agent-host plugin test word-count.wasm --cases cases.toml --strict\n\n\
        A file with calls, in TOML or JSON:\n  [[case]]\n  tool = \"read_note\"\n  \
        arguments = { path = \"a.txt\" }\n  \
        files = { \"a.txt\" = \"hello\" }        # in the folder, before the call\n  \
        folder = \"/workspace\"                # where the tool finds it; this by default\n  \
        buckets = { notes = { key = \"value\" } }\n  answers = [true]                     # to \
        questions of the tool\n  expect.outcome = \"done\"              # or asks, \
        invalid-arguments, not-found, denied, failed, retry-later\n  \
        expect.contains = [\"hello\"]          # or text = all of it\n  \
        expect.json = { words = 2 }          # a part of the result\n  \
        expect.files = { \"b.txt\" = \"...\" }   # in the folder, after the call\n  \
        expect.buckets = { notes = {} }      # all that these buckets hold after the call"
    )]
    Test(Test),
    /// Write a manifest into a component: its version and authors, and the grants that it would
    /// like
    #[command(after_help = STAMP_HELP)]
    Stamp(Stamp),
}

/// The component to test.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The component's file
    pub(crate) file: PathBuf,
    /// Sample calls of its tools, with what is expected of each
    #[arg(long, value_name = "FILE")]
    pub(crate) cases: Option<PathBuf>,
    /// Exit with 1 on warnings too
    #[arg(long)]
    pub(crate) strict: bool,
}

/// The component, and the manifest for it.
#[derive(Debug, Args)]
pub(crate) struct Stamp {
    /// The component's file
    pub(crate) file: PathBuf,
    /// The manifest, a JSON file
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: PathBuf,
    /// Write the result here instead of over the component
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
