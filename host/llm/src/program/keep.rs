//! The supervisor: a process between the host and one program, which ends that with all that it
//! started.
//!
//! The host itself cannot: a program's children have process groups of their own and may outlive
//! their parent. On Linux the supervisor becomes the parent of each of them that loses its own, so
//! nothing is left when it ends. It ends with the host, whose end it sees on its stdin.

use crate::program::below::{Listed, all, below};
use crate::program::running::{Confinement, Exit, Order};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of one line of a supervisor's input: an order, or a text for the program.
const FRAME_BYTES_MAX: u64 = 64 << 20;
/// Milliseconds between two polls at what the program and its children take.
const POLL_MS: u64 = 250;
/// Milliseconds between two rounds of killing.
const ROUND_MS: u64 = 20;
/// Rounds of killing. What is left then is held by the system itself.
const ROUNDS_MAX: u32 = 500;
/// Looks for what is not stopped yet, in a round of killing.
const STOPS_MAX: u32 = 50;

/// An event of a supervisor's life.
enum SupervisorEvent {
    /// A process below it ended: its id and its exit code, none if a signal ended it.
    Ended(i32, Option<i32>),
    /// No process is below it any more.
    NoneLeft,
    /// The host says that it is to end, or is gone.
    Instructed,
}

/// The way in which a supervisor starts the process that becomes the program.
#[derive(Debug, Clone)]
pub struct Starter {
    /// The file of this program.
    pub program: PathBuf,
    /// The arguments with which it calls [`confine`](super::confine). The confinement, `--` and the
    /// program's own command follow them.
    pub arguments: Vec<OsString>,
}

/// Runs as a supervisor and returns its exit code.
///
/// The first line of the input is the order. Each further line is a JSON string for the program's
/// stdin, or `null`, which closes that. The end of the input ends the program.
///
/// This process must not lead a process group: it makes a session of its own.
#[must_use]
pub fn keep(input: impl Read + Send + 'static, starter: &Starter) -> u8 {
    // The host's terminal is not for a program, which could type into it, and a signal from there
    // must not end the supervisor first.
    if rustix::process::setsid().is_err() {
        return Exit::NotStarted.code();
    }
    let mut input = BufReader::new(input);
    let order = frame(&mut input).and_then(|line| serde_json::from_slice::<Order>(&line).ok());
    let Some(order) = order else {
        return Exit::NotStarted.code();
    };
    if adopt_orphans().is_err() {
        return Exit::NotStarted.code();
    }
    let Ok(mut child) = start(&order, starter) else {
        return Exit::NotStarted.code();
    };
    let program = Pid::from_child(&child);
    let (tell, seen) = channel();
    listen(input, child.stdin.take(), tell.clone());
    thread::spawn(move || reap(&tell));
    let exit = watch(&order, program, &seen);
    if matches!(exit, Exit::Instructed) {
        ask_to_end(&order, program, &seen);
    }
    let is_all = kill_all(program, &seen);
    // Here, because whoever waits for this process may be gone.
    let _ = std::fs::remove_dir_all(&order.temporary);
    if is_all {
        exit.code()
    } else {
        Exit::Left.code()
    }
}

/// Makes this process the parent of every orphan below it.
#[cfg(target_os = "linux")]
fn adopt_orphans() -> rustix::io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Does nothing: other systems give orphans to their first process. Only the program's own group is
/// ended there.
#[cfg(not(target_os = "linux"))]
fn adopt_orphans() -> rustix::io::Result<()> {
    Ok(())
}

/// Reads a line of the input; none at its end, and none for one that is not whole or too long.
fn frame(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut limited = input.take(FRAME_BYTES_MAX);
    limited.read_until(b'\n', &mut line).ok()?;
    (line.pop() == Some(b'\n')).then_some(line)
}

/// Starts the program in a process group of its own.
fn start(order: &Order, starter: &Starter) -> std::io::Result<Child> {
    let confinement = Confinement {
        supervisor: std::process::id(),
        ..order.confinement.clone()
    };
    Command::new(&starter.program)
        .args(&starter.arguments)
        .arg(serde_json::to_string(&confinement)?)
        .arg("--")
        .arg(&order.program)
        .args(&order.arguments)
        .env_clear()
        .envs(&order.environment)
        .current_dir(&order.folder)
        .process_group(0)
        .stdin(Stdio::piped())
        .spawn()
}

/// Passes on what the host writes, and tells when it is to end. Two threads: a program that reads
/// nothing must not keep the supervisor from hearing that.
fn listen(
    mut input: impl BufRead + Send + 'static,
    stdin: Option<ChildStdin>,
    tell: Sender<SupervisorEvent>,
) {
    let (give, texts) = channel::<Option<String>>();
    thread::spawn(move || {
        let mut stdin = stdin;
        for text in texts {
            let Some(text) = text else {
                stdin = None;
                continue;
            };
            let Some(open) = &mut stdin else {
                continue;
            };
            let written = open.write_all(text.as_bytes());
            if written.and_then(|()| open.flush()).is_err() {
                stdin = None;
            }
        }
    });
    thread::spawn(move || {
        while let Some(line) = frame(&mut input) {
            let Ok(text) = serde_json::from_slice::<Option<String>>(&line) else {
                break;
            };
            // A program that is gone reads nothing any more.
            let _ = give.send(text);
        }
        // Nobody listens any more when the supervisor is about to end.
        let _ = tell.send(SupervisorEvent::Instructed);
    });
}

/// Reaps every process below, and tells of each.
fn reap(tell: &Sender<SupervisorEvent>) {
    loop {
        let seen = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => {
                let code = status.exit_status();
                SupervisorEvent::Ended(pid.as_raw_pid(), code)
            }
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => SupervisorEvent::NoneLeft,
        };
        let is_over = matches!(seen, SupervisorEvent::NoneLeft);
        if tell.send(seen).is_err() || is_over {
            return;
        }
    }
}

/// Waits until the program ends or has to.
fn watch(order: &Order, program: Pid, seen: &Receiver<SupervisorEvent>) -> Exit {
    let own = program.as_raw_pid();
    let pause = Duration::from_millis(POLL_MS);
    let mut inspection = Instant::now() + pause;
    loop {
        match seen.recv_timeout(inspection.saturating_duration_since(Instant::now())) {
            Ok(SupervisorEvent::Ended(id, code)) if id == own => return Exit::of_program(code),
            Ok(SupervisorEvent::NoneLeft) | Err(RecvTimeoutError::Disconnected) => {
                return Exit::Failure;
            }
            Ok(SupervisorEvent::Instructed) => return Exit::Instructed,
            Ok(SupervisorEvent::Ended(..)) | Err(RecvTimeoutError::Timeout) => {}
        }
        // Children that come and go all the time must not keep it from looking.
        if Instant::now() >= inspection {
            if let Some(exit) = too_much(order, &below_this()) {
                return exit;
            }
            inspection = Instant::now() + pause;
        }
    }
}

/// Returns the limit that some processes are beyond.
fn too_much(order: &Order, processes: &[Listed]) -> Option<Exit> {
    let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
    if count > order.processes_max {
        return Some(Exit::Processes);
    }
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX);
    let bytes = processes.iter().fold(0_u64, |sum, listed| {
        sum.saturating_add(listed.pages.saturating_mul(page))
    });
    (bytes > order.memory_bytes_max).then_some(Exit::Memory)
}

/// Returns all processes below this one.
fn below_this() -> Vec<Listed> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    below(own, &all())
}

/// Asks the program's group to end, and waits for the program as long as it is given.
fn ask_to_end(order: &Order, program: Pid, seen: &Receiver<SupervisorEvent>) {
    let _ = kill_process_group(program, Signal::TERM);
    let until = Instant::now() + Duration::from_millis(order.grace_ms);
    let own = program.as_raw_pid();
    while let Ok(reported) = seen.recv_timeout(until.saturating_duration_since(Instant::now())) {
        match reported {
            SupervisorEvent::Ended(id, _) if id == own => return,
            SupervisorEvent::NoneLeft => return,
            SupervisorEvent::Ended(..) | SupervisorEvent::Instructed => {}
        }
    }
}

/// Kills the program's group and everything below this process. Returns whether nothing is left.
fn kill_all(program: Pid, seen: &Receiver<SupervisorEvent>) -> bool {
    for _ in 0..ROUNDS_MAX {
        stop_all();
        // They may be gone by now.
        let _ = kill_process_group(program, Signal::KILL);
        for listed in below_this() {
            signal(listed, Signal::KILL);
        }
        let round = Instant::now() + Duration::from_millis(ROUND_MS);
        loop {
            match seen.recv_timeout(round.saturating_duration_since(Instant::now())) {
                Ok(SupervisorEvent::NoneLeft) | Err(RecvTimeoutError::Disconnected) => return true,
                Ok(SupervisorEvent::Ended(..) | SupervisorEvent::Instructed) => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
    }
    false
}

/// Stops everything below this process, until nothing new is there: what is stopped starts nothing
/// while the others are killed.
fn stop_all() {
    let mut stopped = BTreeSet::new();
    for _ in 0..STOPS_MAX {
        let mut is_all = true;
        for listed in below_this() {
            if stopped.insert(listed.id) {
                is_all = false;
                signal(listed, Signal::STOP);
            }
        }
        if is_all {
            return;
        }
    }
}

/// Sends a signal to a process, which may be gone by now.
fn signal(listed: Listed, signal: Signal) {
    if let Some(pid) = Pid::from_raw(listed.id) {
        let _ = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::{frame, too_much};
    use crate::program::below::Listed;
    use crate::program::running::{Confinement, Exit, Order};
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn order(processes_max: u32, memory_bytes_max: u64) -> Order {
        Order {
            program: PathBuf::from("/bin/true"),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            folder: PathBuf::from("/"),
            temporary: PathBuf::from("/nowhere"),
            processes_max,
            memory_bytes_max,
            grace_ms: 1,
            confinement: Confinement {
                supervisor: 0,
                read: Vec::new(),
                write: Vec::new(),
                is_required: false,
                cpu_s_max: 1,
                file_bytes_max: 1,
            },
        }
    }

    #[test]
    fn a_line_of_the_input_is_whole_or_the_end() {
        let mut input = &b"one\n\nthree"[..];
        assert_eq!(frame(&mut input).as_deref(), Some(&b"one"[..]));
        assert_eq!(frame(&mut input).as_deref(), Some(&b""[..]));
        assert_eq!(frame(&mut input), None);
    }

    #[test]
    fn processes_and_memory_are_counted_over_all_of_them() {
        let process = |id, pages| Listed {
            id,
            parent: 1,
            pages,
        };
        let two = [process(2, 10), process(3, 10)];
        assert_eq!(too_much(&order(2, 1 << 40), &two), None);
        assert_eq!(too_much(&order(1, 1 << 40), &two), Some(Exit::Processes));
        assert_eq!(too_much(&order(2, 11 * 4_096), &two), Some(Exit::Memory));
    }
}
