//! Lines from stdin, one at a time and only when they are wanted.

use std::io::stdin;
use std::sync::mpsc as threads;
use tokio::sync::mpsc;

/// See the module. Reading blocks, so it has a thread of its own, which ends with the process.
#[derive(Debug)]
pub(super) struct Input {
    wanted: threads::Sender<()>,
    lines: mpsc::UnboundedReceiver<Option<String>>,
    /// Whether a line is on its way already.
    asked: bool,
}

impl Input {
    /// Starts the thread.
    pub(super) fn start() -> Self {
        let (wanted, wants) = threads::channel::<()>();
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            while wants.recv().is_ok() {
                let mut line = String::new();
                let read = stdin().read_line(&mut line).is_ok_and(|bytes| bytes > 0);
                if sender.send(read.then(|| line.trim_end_matches(['\n', '\r']).to_owned())).is_err() {
                    return;
                }
            }
        });
        Self { wanted, lines, asked: false }
    }

    /// The next line; none at the end. May be dropped and asked again: no line gets lost.
    pub(super) async fn next(&mut self) -> Option<String> {
        if !self.asked {
            self.asked = self.wanted.send(()).is_ok();
        }
        let line = self.lines.recv().await.flatten();
        self.asked = false;
        line
    }
}
