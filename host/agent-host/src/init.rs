//! `init`: a first configuration, with a comment on each key.

use crate::answer::Answer;
use crate::cli::Init;
use crate::config::locations::{CONFIG_FILE, SYSTEM_CONFIG, config_folders};
use crate::failure::{Exit, Failure};
use crate::invocation;
use anyhow::{Context, anyhow};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The configuration; `{{data}}` stands for the lines about the data folder.
const CONFIG: &str = include_str!("init/config.toml");
/// The rules of its scripted model.
const SCRIPT: &str = include_str!("init/script.toml");
/// Name of the file with these rules.
const SCRIPT_FILE: &str = "script.toml";
/// The folder of a system service's data.
const SYSTEM_STATE: &str = "/var/lib/agent-host";

/// Writes a first configuration.
///
/// # Errors
/// There is one already, or it cannot be written.
pub(crate) fn run(init: &Init) -> Result<Answer, Failure> {
    let standard = config_folders();
    let folder = match &init.dir {
        Some(folder) => std::path::absolute(folder)
            .with_context(|| format!("`{}` is no folder", folder.display()))?,
        None => standard.first().cloned().ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                anyhow!("there is no home folder to write it to"),
            )
            .advise("name a folder with --dir")
        })?,
    };
    let config = CONFIG.replace("{{data}}", &data_lines(&folder, &standard));
    write(&folder, &[(CONFIG_FILE, &config), (SCRIPT_FILE, SCRIPT)])?;
    let file = folder.join(CONFIG_FILE);
    let next = ["config check", "serve", "chat"].map(|words| invocation::command_for(&file, words));
    let files = [CONFIG_FILE, SCRIPT_FILE].map(|name| folder.join(name).display().to_string());
    let lines = files.iter().map(|file| format!("wrote {file}"));
    let answer = Answer::new(json!({ "files": files, "next": next }), lines);
    let commands = next.iter().map(|command| format!("  {command}"));
    Ok(answer.notice(["next:"]).notice(commands))
}

/// Returns the lines about the data folder. Where the configuration is found without being named,
/// data is where the system's conventions say; otherwise it is beside the configuration.
fn data_lines(folder: &Path, standard: &[PathBuf]) -> String {
    let (comment, value) = if folder == Path::new(SYSTEM_CONFIG) {
        (
            "the system's place for the data of services.",
            Some(SYSTEM_STATE),
        )
    } else if standard.iter().any(|standard| standard == folder) {
        (
            "$XDG_STATE_HOME/agent-host or\n# ~/.local/state/agent-host unless you name another.",
            None,
        )
    } else {
        ("a folder beside this file.", Some("data"))
    };
    let line = match value {
        Some(value) => format!("dataDir = \"{value}\""),
        None => "# dataDir = \"/srv/agent-host\"".to_owned(),
    };
    format!("# The folder for everything that the host remembers: {comment}\n{line}")
}

/// Writes the files: all of them, or none where one is there already.
fn write(folder: &Path, files: &[(&str, &str)]) -> Result<(), Failure> {
    // A configuration in the other format would be passed over, or pass over this one.
    let names = files.iter().map(|(name, _)| *name).chain(["config.json"]);
    for name in names {
        let path = folder.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(taken(&path));
        }
    }
    fs::create_dir_all(folder)
        .with_context(|| format!("the folder `{}` cannot be made", folder.display()))?;
    // The configuration last: when it is there, all of it is.
    for (name, text) in files.iter().rev() {
        let path = folder.join(name);
        let written = fs::File::create_new(&path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.with_context(|| format!("`{}` cannot be written", path.display()))?;
    }
    Ok(())
}

fn taken(path: &Path) -> Failure {
    let error = anyhow!(
        "`{}` is there already, and is not overwritten",
        path.display()
    );
    Failure::new(Exit::Usage, error)
        .advise("name another folder with --dir, or move the file out of the way")
}

#[cfg(test)]
mod tests {
    use super::{CONFIG, CONFIG_FILE, SCRIPT, SCRIPT_FILE, data_lines, write};
    use crate::config::Config;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn config(folder: &str) -> String {
        let standard = [PathBuf::from("/home/ada/.config/agent-host")];
        CONFIG.replace("{{data}}", &data_lines(Path::new(folder), &standard))
    }

    #[test]
    fn every_key_of_a_first_configuration_has_a_comment_above_it() {
        for folder in ["/etc/agent-host", "/home/ada/.config/agent-host", "/srv/x"] {
            let config = config(folder);
            let lines: Vec<&str> = config.lines().collect();
            for pair in lines.windows(2) {
                if pair[1].contains(" = ") && !pair[1].starts_with('#') {
                    assert!(pair[0].starts_with("# "), "{pair:?}");
                }
            }
            assert!(lines.iter().all(|line| line.chars().count() <= 100));
        }
    }

    #[test]
    fn a_first_configuration_shows_how_programs_get_time_to_compute() {
        let config = config("/srv/x");
        let table = config
            .lines()
            .skip_while(|line| *line != "# [components.code]")
            .map_while(|line| line.strip_prefix("# "));
        let table = table.collect::<Vec<_>>().join("\n");
        let config: Config = toml::from_str(&table).unwrap();
        let limits = config.components["code"].limits;
        assert_eq!((limits.cpu_ms_max, limits.wall_ms_max), (30_000, 30_000));
    }

    #[test]
    fn data_is_where_the_system_says_or_beside_the_configuration() {
        assert!(config("/etc/agent-host").contains("\ndataDir = \"/var/lib/agent-host\"\n"));
        assert!(!config("/home/ada/.config/agent-host").contains("\ndataDir"));
        assert!(config("/srv/x").contains("\ndataDir = \"data\"\n"));
    }

    #[test]
    fn a_configuration_that_is_there_is_not_overwritten_by_a_first_one() {
        for present in [CONFIG_FILE, SCRIPT_FILE, "config.json"] {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join("new");
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(present), "mine").unwrap();
            let files = [(CONFIG_FILE, "a"), (SCRIPT_FILE, SCRIPT)];
            let refused = write(&folder, &files).unwrap_err();
            assert!(refused.error.to_string().contains(present), "{refused:?}");
            assert_eq!(fs::read_to_string(folder.join(present)).unwrap(), "mine");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "{present}");
        }
    }
}
