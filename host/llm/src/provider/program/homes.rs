//! The homes of a program: one for each agent, with the sessions that may go on beside it.
//!
//! A session of a program only ever grows, and a thread may fork. So the host keeps the number of
//! turns of each session, outside of what the program may write. A session goes on only from the
//! turn at which it is; whoever takes it up takes that number away first. A turn that breaks off
//! leaves none, and the session is not taken up again.

use super::thread::is_session;
use domain::id::AgentId;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the number of a session's turns.
const TURNS_BYTES_MAX: u64 = 32;
/// Permissions of the folders of a home.
const MODE: u32 = 0o700;
/// Permissions of a file with words for a turn.
const FILE_MODE: u32 = 0o600;
/// The name of the file with the system prompt, in the folder of a turn.
const SYSTEM_FILE: &str = "system-prompt.md";

/// The home of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Home {
    /// The program's `HOME`.
    pub(super) home: PathBuf,
    /// The program's folder for temporary files of this turn. Not in its home, where the program
    /// could put anything in its place.
    pub(super) temporary: PathBuf,
    sessions: PathBuf,
}

impl Home {
    /// Makes the home of an agent, if it is not there, and a folder for a turn of this name.
    ///
    /// # Errors
    /// One of them cannot be made.
    pub(super) fn open(homes: &Path, agent: AgentId, turn: &str) -> std::io::Result<Self> {
        let own = homes.join(agent.to_string());
        let home = own.join("home");
        let made = Self {
            temporary: own.join("tmp").join(turn),
            sessions: own.join("sessions"),
            home,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(MODE);
        builder.create(&made.home)?;
        builder.create(&made.temporary)?;
        builder.create(&made.sessions)?;
        Ok(made)
    }

    /// Writes the system prompt into a file of the turn's own folder, and returns its path. It goes
    /// with that folder. No argument: a program could read one as an option or as a path, and other
    /// users of the machine see it.
    ///
    /// # Errors
    /// It cannot be written, or the path is not UTF-8.
    pub(super) fn write_system(&self, system: &str) -> std::io::Result<String> {
        let path = self.temporary.join(SYSTEM_FILE);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(FILE_MODE);
        options.open(&path)?.write_all(system.as_bytes())?;
        let path = path.into_os_string().into_string();
        path.map_err(|_| std::io::Error::new(ErrorKind::InvalidFilename, "not UTF-8"))
    }

    /// Takes up a session that has so many turns; false if it has others, or somebody else took it
    /// up.
    ///
    /// # Errors
    /// The folder of the sessions cannot be read or changed.
    pub(super) fn take_up(&self, session: &str, turns: u64) -> std::io::Result<bool> {
        if !is_session(session) {
            return Ok(false);
        }
        let file = self.sessions.join(session);
        let mut text = String::new();
        let read = std::fs::File::open(&file)
            .and_then(|file| file.take(TURNS_BYTES_MAX).read_to_string(&mut text));
        match read {
            Ok(_) if text == turns.to_string() => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
        // Of several who read it, one removes it.
        match std::fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets a session go on from now: it has so many turns.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn put_down(&self, session: &str, turns: u64) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(self.sessions.join(session))?;
        file.write_all(turns.to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Home;
    use domain::id::AgentId;
    use uuid::Uuid;

    #[test]
    fn a_session_goes_on_once_and_only_from_where_it_is() {
        let homes = tempfile::tempdir().unwrap();
        let home = Home::open(homes.path(), AgentId(Uuid::nil()), "t").unwrap();
        assert!(!home.take_up("s-1", 0).unwrap());
        home.put_down("s-1", 2).unwrap();
        assert!(!home.take_up("s-1", 1).unwrap(), "a fork from before");
        assert!(!home.take_up("../s-1", 2).unwrap());
        assert!(home.take_up("s-1", 2).unwrap());
        assert!(!home.take_up("s-1", 2).unwrap(), "it is taken up already");
        home.put_down("s-1", 3).unwrap();
        assert!(home.take_up("s-1", 3).unwrap());
    }

    #[test]
    fn two_agents_have_two_homes_and_each_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let homes = tempfile::tempdir().unwrap();
        let open = |id| Home::open(homes.path(), AgentId(Uuid::from_u128(id)), "t").unwrap();
        let [one, other] = [1, 2].map(open);
        assert_ne!(one.home, other.home);
        let mode = std::fs::metadata(&one.home).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_ne!(one.temporary, other.temporary);
        one.put_down("s", 1).unwrap();
        assert!(!other.take_up("s", 1).unwrap());
    }

    #[test]
    fn a_system_prompt_is_a_file_that_only_its_turn_has() {
        use std::os::unix::fs::PermissionsExt;
        let homes = tempfile::tempdir().unwrap();
        let home = Home::open(homes.path(), AgentId(Uuid::nil()), "t").unwrap();
        let path = home.write_system("/proc/self/environ").unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "/proc/self/environ"
        );
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(std::path::Path::new(&path).starts_with(&home.temporary));
        assert!(home.write_system("").is_err(), "it is there already");
    }

    #[test]
    fn nothing_in_a_home_is_in_the_way_of_the_next_turn() {
        let homes = tempfile::tempdir().unwrap();
        let open = |turn| Home::open(homes.path(), AgentId(Uuid::nil()), turn).unwrap();
        let first = open("1");
        for name in ["tmp", "sessions", "home"] {
            std::fs::write(first.home.join(name), "").unwrap();
        }
        let second = open("2");
        assert!(second.temporary.is_dir() && second.temporary != first.temporary);
        assert!(!second.temporary.starts_with(&second.home));
    }
}
