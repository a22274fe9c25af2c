//! Providers that are programs of the operating system: a process for each turn.
//!
//! A program works by itself: it may call tools of its own and so change the world. A turn of it is
//! therefore never repeated, here or by the broker. The tools of the host are not for it. Each
//! program has a file with its lines (`claude.rs`, `codex.rs`, `pi.rs`); their names and what they
//! share are in `cli.rs`, the part of the conversation that a program is told in `thread.rs`, the
//! homes with its sessions in `homes.rs`, and the ways of its key in `handing.rs`.

mod claude;
mod cli;
mod codex;
mod handing;
mod homes;
mod pi;
mod thread;

use crate::config::ProgramConfig;
use crate::delta::Feed;
use crate::failure::{Failure, Reason, quoted};
use crate::key::{ApiKey, clean};
use crate::peer::Peer;
use crate::program::confine::{SYSTEM_READ, SYSTEM_WRITE};
use crate::program::running::{Confinement, Exit, Order, limit_of};
use crate::program::running::{Running, Silence};
use crate::program::{Enforcement, Supervisor};
use crate::provider::exchange::unkept;
use crate::provider::{Answer, Ask, OwnWork};
use crate::retry::{AttemptError, Mode, Stage};
use crate::trail::Entry;
pub(crate) use cli::Cli;
use cli::{ConversationItem, Gathered, Protocol, Step, Turn};
use domain::message::Part;
use domain::model::Stop;
use domain::redact::Redactor;
use domain::sampling::Sampling;
use egress::awake::{Instant, timeout, timeout_at};
use futures::future::{Either, select};
use handing::KeyTransfer;
use homes::Home;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use uuid::Uuid;

/// Characters of what a program says about its failure.
const CAUSE_CHARS_MAX: usize = 500;
/// The variable with the folders in which programs are looked for, and its value.
const SEARCH_PATH: (&str, &str) = ("PATH", "/usr/local/bin:/usr/bin:/bin");

/// The end of a program's turn in words.
struct Summary {
    /// The host's words.
    reported: String,
    /// The program's last words, cleaned; empty for none.
    said: String,
    /// True if a limit ended it.
    is_limit: bool,
}

impl Summary {
    /// Returns all of it in one line.
    fn whole(&self) -> String {
        format!("{}{}", self.reported, quoted(&self.said))
    }
}

/// A provider that is a program.
pub(crate) struct Program {
    pub(crate) cli: Cli,
    /// Its part of the config, with whole paths.
    pub(crate) config: ProgramConfig,
    /// The values of the variables that it gets.
    pub(crate) environment: BTreeMap<String, String>,
    /// The key of its service, and the variable that has it.
    pub(crate) key: Option<(String, ApiKey)>,
    /// The redactor that takes the key out of what it says.
    pub(crate) redactor: Redactor,
    /// The program that keeps it; none where nothing may be started.
    pub(crate) supervisor: Option<Supervisor>,
}

/// A turn that is about to begin.
struct Prepared {
    home: Home,
    system: String,
    system_file: String,
    /// The pipe with the key, where it goes by one.
    key_pipe: Option<PathBuf>,
    prompt: String,
    /// The session that goes on, with its turns until now.
    resumed: Option<(String, u64)>,
    fresh: String,
}

/// The end of a turn.
enum Ended {
    /// The program says that it is done.
    Done,
    /// The program says that it failed.
    Failed(String),
    /// It said nothing more that could be used.
    CutOff(Silence),
    /// Its time was used up.
    OutOfTime,
}

impl Program {
    pub(crate) fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref().map(|(_, key)| key)
    }

    /// Returns the key that goes to the program on a way, if there is one.
    fn key_by(&self, transfer: KeyTransfer) -> Option<&ApiKey> {
        let (variable, key) = self.key.as_ref()?;
        (self.cli.key_transfer(variable) == transfer).then_some(key)
    }

    /// Returns the milliseconds for which it may show nothing: it may work with tools meanwhile.
    pub(crate) fn quiet_ms(&self) -> u64 {
        self.config.limits.turn_ms_max
    }

    /// Returns the first setting that is set: a program takes none.
    pub(crate) fn unfit(&self, sampling: &Sampling) -> Option<(&'static str, String)> {
        let set = [
            ("temperature", sampling.temperature.is_some()),
            ("stop", !sampling.stop.is_empty()),
            ("reasoningEffort", sampling.reasoning_effort.is_some()),
        ];
        set.into_iter()
            .find(|(_, is_set)| *is_set)
            .map(|(field, _)| (field, "a program takes no such setting".to_owned()))
    }

    /// Takes one turn. Whatever becomes of it, the program and all that it started are ended.
    pub(crate) async fn ask(
        &self,
        ask: &Ask<'_>,
        mode: Mode,
        feed: &Feed<'_>,
    ) -> Result<Answer, AttemptError> {
        let exchange = Exchange {
            program: self,
            ask,
            mode,
            peer: Peer {
                provider: ask.provider,
                model: ask.model,
                key: self.key(),
            },
        };
        let supervisor = exchange.permitted()?;
        let prepared = exchange.prepared()?;
        let until = Instant::now() + Duration::from_millis(self.config.limits.turn_ms_max);
        Box::pin(exchange.turn(supervisor, &prepared, until, feed)).await
    }

    /// Returns the environment of a turn.
    fn environment(&self, home: &Home) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::new();
        let mut put = |name: &str, value: String| environment.insert(name.to_owned(), value);
        put(SEARCH_PATH.0, SEARCH_PATH.1.to_owned());
        put("HOME", home.home.display().to_string());
        put("TMPDIR", home.temporary.display().to_string());
        let (variable, place) = self.cli.own_home();
        put(variable, home.home.join(place).display().to_string());
        environment.extend(self.environment.clone());
        let switches = self.cli.switches().iter();
        let switches = switches.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        environment.extend(switches);
        if let Some((variable, key)) = &self.key
            && self.cli.key_transfer(variable) == KeyTransfer::Environment
        {
            environment.insert(variable.clone(), key.exposed().to_owned());
        }
        environment
    }

    fn order(&self, turn: &Turn<'_>, home: &Home) -> Order {
        let config = &self.config;
        let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let mut read = folders(&SYSTEM_READ);
        read.push(config.path.clone());
        read.extend(config.read_folders.iter().cloned());
        let mut write = folders(&SYSTEM_WRITE);
        write.extend([home.home.clone(), home.temporary.clone()]);
        if config.read_only {
            read.push(config.folder.clone());
        } else {
            write.push(config.folder.clone());
        }
        Order {
            program: config.path.clone(),
            arguments: self.cli.arguments(turn),
            environment: self.environment(home),
            folder: config.folder.clone(),
            temporary: home.temporary.clone(),
            processes_max: config.limits.processes_max,
            memory_bytes_max: config.limits.memory_bytes_max,
            grace_ms: config.limits.grace_ms,
            confinement: Confinement {
                supervisor: 0,
                read,
                write,
                is_required: config.require_confinement,
                cpu_s_max: config.limits.cpu_s_max,
                file_bytes_max: config.limits.file_bytes_max,
            },
        }
    }

    /// Returns a turn as the ledger names it.
    fn describe(&self) -> String {
        let confined = match Enforcement::of_system() {
            Enforcement::Nothing => "not confined, in",
            Enforcement::Folders => "confined, without its signals, to",
            Enforcement::Signals => "confined, without its calls on other processes, to",
            Enforcement::Whole => "confined to",
        };
        format!(
            "{} {} {confined} {}",
            self.cli.name(),
            self.config.path.display(),
            self.config.folder.display()
        )
    }
}

/// One turn under way.
struct Exchange<'a> {
    program: &'a Program,
    ask: &'a Ask<'a>,
    mode: Mode,
    peer: Peer<'a>,
}

impl Exchange<'_> {
    fn failure(&self, stage: Stage, failure: Failure) -> AttemptError {
        AttemptError::new(self.mode, stage, failure)
    }

    /// Returns the supervisor, if the program may be started.
    fn permitted(&self) -> Result<&Supervisor, AttemptError> {
        let refused =
            |reported| self.failure(Stage::Unsent, self.peer.program_failed(reported, ""));
        if !self.program.config.enabled {
            return Err(refused(
                "its program is not switched on; whoever runs the host sets `program.enabled` of \
                 the provider",
            ));
        }
        let supervisor = self.program.supervisor.as_ref();
        supervisor.ok_or_else(|| refused("no programs are started here"))
    }

    fn prepared(&self) -> Result<Prepared, AttemptError> {
        let prompt = self.ask.prompt;
        let system = prompt.system.join("\n\n");
        let homeless = |error: std::io::Error| {
            let reported = format!("its home cannot be used: {error}");
            self.failure(
                Stage::Unsent,
                self.peer.unavailable(Reason::Connect, &reported),
            )
        };
        let fresh = Uuid::new_v4().to_string();
        let homes = &self.program.config.home;
        let home = Home::open(homes, self.ask.agent, &fresh).map_err(homeless)?;
        let system_file = home.write_system(&system).map_err(homeless)?;
        let key = self.program.key_by(KeyTransfer::Pipe);
        let key_pipe = key.map(|_| handing::pipe(&home.temporary)).transpose();
        let key_pipe = key_pipe.map_err(homeless)?;
        let known = thread::known(&prompt.messages, self.ask.provider, self.ask.model);
        let mut resumed = None;
        let mut messages = prompt.messages.as_slice();
        if let Some(known) = known
            && home
                .take_up(&known.session, known.turns)
                .map_err(homeless)?
        {
            messages = messages.get(known.messages..).unwrap_or_default();
            resumed = Some((known.session, known.turns));
        }
        Ok(Prepared {
            home,
            system,
            system_file,
            key_pipe,
            prompt: thread::fitting(thread::render(messages), prompt.reply_schema.as_ref()),
            resumed,
            fresh,
        })
    }

    async fn turn(
        &self,
        supervisor: &Supervisor,
        prepared: &Prepared,
        until: Instant,
        feed: &Feed<'_>,
    ) -> Result<Answer, AttemptError> {
        let program = self.program;
        let turn = self.described(prepared);
        let entry = self.begun();
        let order = program.order(&turn, &prepared.home);
        let bytes_max = program.config.limits.output_bytes_max;
        let started = Running::start(supervisor, &order, bytes_max).await;
        let mut running = match started {
            Ok(running) => running,
            Err(error) => {
                let _ = std::fs::remove_dir_all(&prepared.home.temporary);
                entry.end(&format!("could not be started: {error}"), false);
                return Err(self.unstarted(&error.to_string()));
            }
        };
        let mut protocol = program.cli.protocol(&turn);
        let converse = converse(&mut running, protocol.as_mut(), feed, &program.redactor);
        let converse = self.giving_key(prepared, converse);
        let ended = timeout_at(until, converse)
            .await
            .unwrap_or(Ended::OutOfTime);
        if matches!(ended, Ended::Done) {
            finish(&mut running, program.config.limits.grace_ms).await;
        }
        let (exit, diagnostics) = running.end().await;
        feed.finish();
        let end = self.summary(&ended, exit, &diagnostics);
        entry.end(&end.whole(), end.is_limit);
        let gathered = protocol.gathered();
        let reported_usage = gathered
            .usage
            .filter(|usage| usage.total() > 0)
            .map(Box::new);
        let error = match ended {
            Ended::Done => return self.answer(gathered, prepared),
            Ended::Failed(words) => self.failure(Stage::Begun, self.reported(&words)),
            // A program can end with the same code, so that even this is not tried again.
            Ended::CutOff(_) if matches!(exit, Exit::NotConfined | Exit::NotStarted) => self
                .failure(
                    Stage::Asked,
                    self.peer.program_failed(&end.reported, &end.said),
                ),
            Ended::CutOff(_) | Ended::OutOfTime => {
                self.failure(Stage::Begun, self.peer.cut_off(&end.reported, &end.said))
            }
        };
        Err(AttemptError {
            reported_usage,
            ..error
        })
    }

    /// Returns the turn as the program is to take it.
    fn described<'b>(&'b self, prepared: &'b Prepared) -> Turn<'b> {
        let program = self.program;
        let resumed = prepared.resumed.as_ref();
        Turn {
            model: self.ask.model,
            system: &prepared.system,
            system_file: &prepared.system_file,
            key_pipe: prepared.key_pipe.as_deref(),
            key: program.key_by(KeyTransfer::Stdin),
            prompt: &prepared.prompt,
            resumed: resumed.map(|(session, _)| session.as_str()),
            fresh: &prepared.fresh,
            folder: &program.config.folder,
            read_only: program.config.read_only,
            is_confined: Enforcement::of_system() == Enforcement::Whole,
            tools: &program.config.tools,
            login: program.config.login,
        }
    }

    /// Puts the use of the key and the start of the turn on record.
    fn begun(&self) -> Entry<'_> {
        let program = self.program;
        if let Some((variable, _)) = &program.key {
            let transfer = program.cli.key_transfer(variable).as_str();
            let used = format!("{transfer} {variable} -> {}", program.config.path.display());
            self.ask.trail.key_used(&used);
        }
        Entry::begin(self.ask.trail, program.describe())
    }

    /// Talks with the program, and gives it its key meanwhile, if that goes by a pipe.
    async fn giving_key(
        &self,
        prepared: &Prepared,
        converse: impl Future<Output = Ended>,
    ) -> Ended {
        let key = self.program.key_by(KeyTransfer::Pipe);
        let Some((pipe, key)) = prepared.key_pipe.as_deref().zip(key) else {
            return converse.await;
        };
        let converse = pin!(converse);
        let given = pin!(handing::give(pipe, key));
        match select(converse, given).await {
            Either::Left((ended, _)) => ended,
            Either::Right(((), converse)) => converse.await,
        }
    }

    /// Returns the failure of a program that reports one in its own words.
    fn reported(&self, words: &str) -> Failure {
        self.peer
            .program_failed("the program reports", &self.clean(words))
    }

    fn unstarted(&self, reported: &str) -> AttemptError {
        let failure = self.peer.unavailable(Reason::Connect, reported);
        self.failure(Stage::Unsent, failure)
    }

    /// Returns the end of a turn in words.
    fn summary(&self, ended: &Ended, exit: Exit, diagnostics: &str) -> Summary {
        let mut summary = self.cause(ended, exit, diagnostics);
        if exit == Exit::Left {
            summary.reported = format!(
                "something that it started could not be ended; {}",
                summary.reported
            );
        }
        summary
    }

    /// Returns what ended a turn.
    fn cause(&self, ended: &Ended, exit: Exit, diagnostics: &str) -> Summary {
        let limit = match (ended, limit_of(exit)) {
            (Ended::OutOfTime, _) => Some("it took longer than `limits.turnMsMax`"),
            (Ended::CutOff(Silence::TooMuch), _) => {
                Some("it wrote more than `limits.outputBytesMax`, or a line of more than 8 MiB")
            }
            (Ended::CutOff(_), limit) => limit,
            (Ended::Done | Ended::Failed(_), _) => None,
        };
        if let Some(limit) = limit {
            return Summary {
                reported: format!("stopped: {limit}"),
                said: String::new(),
                is_limit: true,
            };
        }
        let mut said = String::new();
        let reported = match ended {
            Ended::Done => "ended".to_owned(),
            Ended::Failed(_) => "ended, and reports an error".to_owned(),
            Ended::CutOff(_) if exit == Exit::NotConfined => {
                "not started: this system cannot confine it, and has to".to_owned()
            }
            Ended::CutOff(_) if exit == Exit::NotStarted => {
                said = self.clean(diagnostics);
                "could not be started".to_owned()
            }
            Ended::CutOff(Silence::Broken(error)) => format!("cut off: {error}"),
            Ended::CutOff(Silence::Ended(rest)) => {
                said = if rest.trim().is_empty() {
                    self.clean(diagnostics)
                } else {
                    self.clean(rest)
                };
                match said.is_empty() {
                    true => "ended before its end was told, and said nothing".to_owned(),
                    false => "ended before its end was told; at last it said".to_owned(),
                }
            }
            Ended::CutOff(Silence::TooMuch) | Ended::OutOfTime => "stopped".to_owned(),
        };
        Summary {
            reported,
            said,
            is_limit: false,
        }
    }

    fn clean(&self, text: &str) -> String {
        clean(text.trim(), self.program.key(), CAUSE_CHARS_MAX)
    }

    /// Returns the reply of a turn that has ended well.
    fn answer(&self, gathered: Gathered, prepared: &Prepared) -> Result<Answer, AttemptError> {
        let mut parts: Vec<Part> = gathered.texts.iter().map(Part::text).collect();
        if let Some(session) = gathered.session.filter(|id| thread::is_session(id)) {
            let known = prepared.resumed.as_ref();
            let turns = known
                .filter(|(resumed, _)| *resumed == session)
                .map_or(1, |(_, turns)| turns.saturating_add(1));
            // Without it, the next turn begins a new session.
            match prepared.home.put_down(&session, turns) {
                Ok(()) => parts.push(Part::Opaque {
                    provider: self.ask.provider.to_owned(),
                    model: self.ask.model.to_owned(),
                    value: thread::opaque(&session, turns, &gathered.calls),
                }),
                Err(error) => tracing::warn!(
                    llm.provider = self.ask.provider,
                    error = &error as &dyn std::error::Error,
                    "the session of a program cannot be kept; its next turn begins a new one"
                ),
            }
        }
        parts
            .iter_mut()
            .for_each(|part| self.program.redactor.part(part));
        match unkept(&parts) {
            None => Ok(Answer {
                parts,
                stop: gathered.stop.unwrap_or(Stop::End),
                usage: gathered.usage,
                own_work: OwnWork {
                    has_tools: !self.program.config.tools.is_empty() || !gathered.calls.is_empty(),
                    calls: gathered.calls,
                },
            }),
            Some(problem) => Err(AttemptError {
                reported_usage: gathered.usage.map(Box::new),
                ..self.failure(Stage::Begun, self.peer.cut_off(problem, ""))
            }),
        }
    }
}

/// Talks with a program until the turn has ended.
async fn converse(
    running: &mut Running,
    protocol: &mut dyn Protocol,
    feed: &Feed<'_>,
    redactor: &Redactor,
) -> Ended {
    let mut said = protocol.opening();
    loop {
        for chunk in said {
            // A program that reads no more may still have something to say.
            match chunk {
                ConversationItem::Text(text) => feed.text(&text),
                ConversationItem::Thinking(text) => feed.thinking(&text),
                ConversationItem::Call(index, name) => feed.own_call(index, &redactor.text(&name)),
                ConversationItem::Write(text) => drop(running.write(&text).await),
                ConversationItem::Close => drop(running.close_input().await),
            }
        }
        let line = match running.line().await {
            Ok(line) => line,
            Err(silence) => return Ended::CutOff(silence),
        };
        said = match domain::json::parse(&line).map(|line: Value| protocol.take(&line)) {
            Ok(Step::More(said)) => said,
            Ok(Step::Done) => return Ended::Done,
            Ok(Step::Failed(words)) => return Ended::Failed(words),
            // Programs also write lines for people.
            Err(_) => Vec::new(),
        };
    }
}

/// Lets a program end by itself, which may still write its session down.
async fn finish(running: &mut Running, grace_ms: u64) {
    let _ = running.close_input().await;
    let rest = async { while running.line().await.is_ok() {} };
    // Whatever has not ended by then is ended.
    let _ = timeout(Duration::from_millis(grace_ms), rest).await;
}

#[cfg(test)]
mod tests;
