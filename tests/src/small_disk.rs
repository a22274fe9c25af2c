//! A file system of its own for a test, with little room: a tmpfs in a mount namespace, which an
//! ordinary user may have as well wherever user namespaces are allowed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

/// The capacity of the file system.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes.
    pub bytes: u64,
    /// Files and folders.
    pub inodes: u64,
}

/// The file system. It is there as long as this is: a process holds its namespace.
#[derive(Debug)]
pub struct SmallDisk {
    holder: Child,
    /// Its end ends the holder.
    _stdin: Option<ChildStdin>,
    at: PathBuf,
    as_root: bool,
}

impl SmallDisk {
    /// Mounts one at a folder, for those only who are started with [`Self::command`].
    ///
    /// # Errors
    /// Why this machine does not allow that.
    pub fn mount(at: &Path, room: Room) -> Result<Self, String> {
        let as_root = rustix::process::geteuid().is_root();
        let mut command = std::process::Command::new("unshare");
        if !as_root {
            command.args(["--user", "--map-root-user"]);
        }
        let mount = r#"mount -t tmpfs -o "size=$1,nr_inodes=$2,mode=700" tmpfs "$3" \
            && echo mounted && cat >/dev/null"#;
        command.args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            mount,
            "sh",
        ]);
        command
            .arg(room.bytes.to_string())
            .arg(room.inodes.to_string())
            .arg(at);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut holder = command
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut said = String::new();
        let stdout = holder.stdout.take().ok_or("no stdout")?;
        BufReader::new(stdout)
            .read_line(&mut said)
            .map_err(|error| error.to_string())?;
        let stdin = holder.stdin.take();
        let disk = Self {
            holder,
            _stdin: stdin,
            at: at.to_owned(),
            as_root,
        };
        if said.trim() == "mounted" {
            Ok(disk)
        } else {
            Err(disk.complaint())
        }
    }

    fn complaint(mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = self.holder.stderr.take() {
            // What was said until then is all there is to say.
            let _ = std::io::Read::read_to_string(&mut BufReader::new(stderr), &mut said);
        }
        format!(
            "no file system of its own can be mounted here: {}",
            said.trim()
        )
    }

    /// The path for processes outside its namespace.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let at = self.at.strip_prefix("/").unwrap_or(&self.at);
        Path::new("/proc")
            .join(self.holder.id().to_string())
            .join("root")
            .join(at)
    }

    /// A program that sees it.
    #[must_use]
    pub fn command(&self, program: &Path) -> tokio::process::Command {
        let mut command = tokio::process::Command::new("nsenter");
        command
            .arg("--target")
            .arg(self.holder.id().to_string())
            .arg("--mount");
        if !self.as_root {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--").arg(program);
        command
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
