//! `verify`, `rebuild`, `backup` and `restore`: through the running host, or on the data folder
//! itself when none is running.

use crate::answer::{Answer, is_true, lines, list, number, text};
use crate::cli::{Restore, Verify};
use crate::client::Client;
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use crate::invocation;
use crate::terminal::Terminal;
use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};
use store::{OpenError, Rewritten, Store};
use tempfile::NamedTempFile;

/// Checks the whole chain of events, and what is kept beside it.
pub(super) async fn verify(
    loaded: &Loaded,
    options: &Verify,
    terminal: Terminal,
) -> Result<Answer, Failure> {
    if options.rebuild {
        rebuilt(loaded, terminal).await?;
    }
    let document = match open(loaded).await? {
        Some(store) => {
            let found = store.verify().await?;
            let fault = found.fault.as_ref();
            let document = json!({
                "intact": fault.is_none(), "events": found.events, "erased": found.erased, "turns": found.turns, "head": found.head,
                "fault_position": fault.map(|fault| fault.position), "fault": fault.map(|fault| fault.problem.clone()),
            });
            store.close().await;
            document
        }
        None => {
            let client = Client::new(loaded)?;
            client.post("/api/verifications", &json!({})).await?
        }
    };
    if is_true(&document, "/intact") {
        let whole = "{/events} events and {/turns} turns are intact, {/erased} payloads were \
                     erased; the chain ends in {/head}";
        return Ok(Answer::filled(document, whole));
    }
    let fault = document.get("fault").and_then(Value::as_str);
    let fault = fault.unwrap_or("it cannot be read");
    let error = match number(&document, "/fault_position") {
        0 => anyhow!("something is not as it was stored: {fault}"),
        position => anyhow!("event {position} is not as it was stored: {fault}"),
    };
    let advice = "keep a copy of the data folder as it is; where the events are whole, \
                  `rebuild` makes the rest of them again, and otherwise \
                  restore the newest backup into another folder";
    let failure = Failure::from(error).advise(advice);
    Ok(Answer::new(document, Vec::<String>::new()).failing(failure))
}

/// Makes a backup.
pub(super) async fn back_up(loaded: &Loaded, file: &Path) -> Result<Answer, Failure> {
    let file = std::path::absolute(file)?;
    let shown = file.display();
    if file.exists() {
        let error = anyhow!("`{shown}` is there already: a backup replaces no file");
        return Err(Failure::new(Exit::Usage, error));
    }
    match open(loaded).await? {
        Some(store) => {
            store.backup(&file).await?;
            store.close().await;
        }
        None => {
            let place = Place::new(&file)?;
            let client = Client::new(loaded)?;
            let made = client.post("/api/backups", &json!({})).await?;
            let made = PathBuf::from(text(&made, "/file"));
            let taken = place.take(&made);
            // The backup is whole in its place, or nobody is to find it elsewhere.
            let removed = fs::remove_file(&made);
            taken?;
            removed.with_context(|| format!("`{}` cannot be removed", made.display()))?;
        }
    }
    let line = format!("the backup is at {shown}");
    Ok(Answer::line(json!({ "file": file }), line))
}

/// Writes a new database file without unused parts.
pub(super) async fn vacuum(loaded: &Loaded) -> Result<Answer, Failure> {
    let Some(store) = open(loaded).await? else {
        let error =
            anyhow!("a host is running on the data folder, and could not store anything meanwhile");
        return Err(Failure::new(Exit::Refused, error).advise("stop it first"));
    };
    let outcome = store.vacuum().await;
    store.close().await;
    match outcome? {
        Rewritten::Yes => {
            let document = json!({ "files_rewritten": true });
            Ok(Answer::line(document, "the database file was rewritten"))
        }
        Rewritten::NotYet { reason } => {
            let error = anyhow!("the database file was not rewritten: {reason}");
            Err(Failure::new(Exit::Failed, error).advise(
                "check the free space on its disk, and whether another program reads the file",
            ))
        }
    }
}

/// The place of a backup, beside which it is written until it is whole.
struct Place<'a> {
    file: &'a Path,
    unfinished: NamedTempFile,
}

impl<'a> Place<'a> {
    /// Begins the file. Fails before anything is copied where none can be made.
    fn new(file: &'a Path) -> anyhow::Result<Self> {
        let folder = file.parent().context("a backup needs the name of a file")?;
        let unfinished = tempfile::Builder::new()
            .prefix(".backup-")
            .tempfile_in(folder)
            .with_context(|| format!("`{}` takes no backup", folder.display()))?;
        Ok(Self { file, unfinished })
    }

    /// Gives a whole backup its name there. Across file systems it is copied first. Nothing is
    /// left if that fails.
    fn take(self, made: &Path) -> anyhow::Result<()> {
        let file = self.file;
        self.named(made)
            .with_context(|| format!("the backup cannot be written to `{}`", file.display()))
    }

    fn named(mut self, made: &Path) -> io::Result<()> {
        if fs::hard_link(made, self.file).is_err() {
            io::copy(&mut fs::File::open(made)?, self.unfinished.as_file_mut())?;
            self.unfinished.as_file().sync_all()?;
            self.unfinished
                .persist_noclobber(self.file)
                .map_err(|error| error.error)?;
        }
        match self.file.parent() {
            Some(folder) => fs::File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// Makes a data folder from a backup.
pub(super) async fn restore(what: &Restore) -> Result<Answer, Failure> {
    let file = what.file.clone();
    let data = what.data.clone();
    let restored = tokio::task::spawn_blocking(move || store::restore(&file, &data)).await??;
    let document = json!({ "data_dir": what.data, "store_id": restored.store_id, "events": restored.events, "head": restored.head });
    let done = format!(
        "{} events are restored to {}",
        restored.events,
        what.data.display()
    );
    let lines = [
        done.as_str(),
        "set `server.dataDir` to it, or start the host with --data",
        "work that was under way in the backup does not go on by itself: the host's first start \
         says what there is, and asks",
    ];
    Ok(Answer::new(document, lines))
}

/// The store of the configuration; none when a running host has it.
pub(super) async fn open(loaded: &Loaded) -> Result<Option<Store>, Failure> {
    let dir = loaded.data_dir();
    if !dir.is_dir() {
        let error = anyhow!("there is no data folder `{}`", dir.display());
        return Err(Failure::new(Exit::Usage, error).advise(invocation::command(loaded, "serve")));
    }
    let opened =
        tokio::task::spawn_blocking(move || Store::open(&dir, store::Options::default())).await?;
    match opened {
        Ok(store) => Ok(Some(store)),
        Err(OpenError::Locked { .. }) => Ok(None),
        Err(error) => {
            let advice = error.advice();
            Err(Failure::from(error).advise(advice))
        }
    }
}

/// Interval at which a running host is asked for its progress.
const ASK: Duration = Duration::from_millis(200);
/// Interval at which the progress is reported.
const TELL: Duration = Duration::from_secs(5);

/// The line where derived data was as its events say.
const WHOLE: [(&str, &str); 1] = [("", "  everything was as they say")];
/// The lines on derived data that was not.
const REPLACED: [(&str, &str); 3] = [
    (
        "/replaced",
        "  replaced  {/table}: {/changed} rows had changed, {/missing} were missing, \
         {/superfluous} were too many",
    ),
    ("", "[[{?/index_replaced}  replaced  the full-text index]]"),
    ("", "  commits waited {/paused_us:thousandths} ms for it"),
];

/// Folds all events again, and reports the data that did not match them.
pub(super) async fn rebuild(loaded: &Loaded, terminal: Terminal) -> Result<Answer, Failure> {
    let document = rebuilt(loaded, terminal).await?;
    let is_whole =
        list(&document, "/replaced").is_empty() && !is_true(&document, "/index_replaced");
    let what: &[_] = if is_whole { &WHOLE } else { &REPLACED };
    let mut reported = lines(&document, &[("/events", "{} events are folded again")]);
    reported.extend(lines(&document, what));
    Ok(Answer::new(document, reported))
}

/// Folds all events again, and returns the result in the form of the API.
pub(super) async fn rebuilt(loaded: &Loaded, terminal: Terminal) -> Result<Value, Failure> {
    let Some(store) = open(loaded).await? else {
        return by_the_host(loaded, terminal).await;
    };
    let rebuilt = store.rebuild().await;
    store.close().await;
    let rebuilt = rebuilt?;
    let replaced: Vec<Value> = rebuilt
        .replaced
        .iter()
        .map(|it| json!({ "table": it.table, "changed": it.changed, "missing": it.missing, "superfluous": it.superfluous }))
        .collect();
    Ok(json!({
        "state": "done", "events": rebuilt.events, "replaced": replaced, "index_replaced": rebuilt.index_replaced,
        "paused_us": u64::try_from(rebuilt.paused.as_micros())?,
    }))
}

async fn by_the_host(loaded: &Loaded, terminal: Terminal) -> Result<Value, Failure> {
    let client = Client::new(loaded)?;
    client.post("/api/rebuilds", &json!({})).await?;
    let mut reported = Duration::ZERO;
    loop {
        let rebuild = client.get("/api/rebuilds").await?;
        match text(&rebuild, "/state") {
            "running" => {}
            "done" => return Ok(rebuild),
            "failed" => {
                let error = anyhow!("nothing was rebuilt: {}", text(&rebuild, "/reason"));
                return Err(error.into());
            }
            _ => {
                let error = anyhow!("the host was restarted meanwhile, and nothing was rebuilt");
                return Err(error.into());
            }
        }
        tokio::time::sleep(ASK).await;
        reported += ASK;
        if reported >= TELL {
            reported = Duration::ZERO;
            terminal.notice(&format!(
                "{}: {} of {} events",
                text(&rebuild, "/stage"),
                number(&rebuild, "/events"),
                number(&rebuild, "/of")
            ));
        }
    }
}
