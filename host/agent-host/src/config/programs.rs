//! Checks of the programs that answer in a model's place, and of who may write to what they run.

use super::directories::{Reached, dangerous};
use super::document::Loaded;
use super::finding::{Finding, error, warning};
use super::locations;
use super::shared::own_of_host;
use domain::grant::{Access, FolderPattern};
use std::path::{Path, PathBuf};

/// Finds folders that no program should have, programs that are switched off though a model needs
/// them, and what of their confinement this system does not enforce.
pub(super) fn check(loaded: &Loaded, findings: &mut Vec<Finding>) {
    check_writers(loaded, findings);
    let config = &loaded.config;
    for (name, provider) in &config.providers {
        let Some(program) = &provider.program else {
            continue;
        };
        let key = |field: &str| format!("providers.{name}.program.{field}");
        let access = if program.read_only {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        };
        let folders = [
            ("folder", &program.folder, access),
            ("home", &program.home, Access::ReadWrite),
        ];
        for (field, folder, access) in folders {
            let folder = loaded.resolve(folder);
            findings.extend(
                not_to_grant(loaded, &folder, access).map(|message| error(key(field), message)),
            );
        }
        for (index, folder) in program.read_folders.iter().enumerate() {
            let folder = loaded.resolve(folder);
            let own = own_of_host(loaded, &folder, Access::ReadOnly);
            findings.extend(own.map(|own| {
                let message = format!("`{}` holds {own}; name less", folder.display());
                error(key(&format!("readFolders[{index}]")), message)
            }));
        }
        for (index, variable) in program.environment.iter().enumerate() {
            let is_given = program.variables.contains_key(variable)
                || locations::text_variable(variable).is_some();
            if program.enabled && !is_given {
                let message = format!(
                    "the environment variable `{variable}` is not set here, empty or not text; \
                     unless it is where the host is started, the program goes without it"
                );
                findings.push(warning(key(&format!("environment[{index}]")), message));
            }
        }
        for folder in llm::program::SYSTEM_READ {
            let own = own_of_host(loaded, Path::new(folder), Access::ReadOnly);
            findings.extend(own.map(|own| {
                let message = format!(
                    "every program may read `{folder}`, which holds {own}; keep that elsewhere"
                );
                error(format!("providers.{name}.program"), message)
            }));
        }
        if !program.enabled {
            let message = "its program is switched off, and every call of its models is refused; \
                           set it to true to let the program be started";
            findings.push(warning(key("enabled"), message));
        } else if let Some(gap) = llm::program::Enforcement::of_system().gap() {
            findings.push(warning(key("enabled"), gap));
        }
    }
}

/// Returns why a folder is not to be granted to a program.
fn not_to_grant(loaded: &Loaded, folder: &Path, access: Access) -> Option<String> {
    // The program may be installed at home or among the system's own files, and works elsewhere.
    let real = folder.canonicalize();
    let real = real.unwrap_or_else(|_| folder.to_owned());
    let what = own_of_host(loaded, folder, access)
        .or_else(|| dangerous(&real, locations::home().as_deref()).map(str::to_owned))?;
    Some(format!(
        "`{}` is, is in or holds {what}; name a folder that is there for this program alone",
        folder.display()
    ))
}

/// The key of the program itself.
const PROGRAM: &str = "path";

/// A use that a program makes of a file or folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is the program, or is read by it: nobody else writes there.
    Own,
    /// It is its home, with its login: nobody else reads or writes there.
    Home,
    /// It works there, and others may too.
    Work,
    /// It reads there as in a working folder, which it does not write.
    Read,
}

/// A part of a program.
struct Part<'a> {
    provider: &'a str,
    /// The key below `providers.<name>.program`.
    key: String,
    used: Use,
    path: PathBuf,
    reached: Reached,
}

/// A folder that somebody may read or write.
struct Granted<'a> {
    /// The provider whose program that is; none for a component.
    provider: Option<&'a str>,
    key: String,
    access: Access,
    path: PathBuf,
    reached: Reached,
}

/// Finds folders in which a component or another program may write what a program is started from,
/// or through which one of its folders is reached, and those in which one may read its home.
fn check_writers(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let parts = parts(loaded);
    let mut granted = of_components(loaded);
    granted.extend(of_programs(loaded));
    for folder in granted {
        let mut others = parts
            .iter()
            .filter(|part| folder.provider != Some(part.provider));
        if let Some(part) = others.find(|part| part.is_open_to(&folder)) {
            let (used, barred) = match folder.access {
                Access::ReadOnly => ("read", "read"),
                Access::ReadWrite => ("written", "change"),
            };
            let message = format!(
                "`{}` is {used} here, and it is, is in or holds `{}` of the program of \
                 `providers.{}`, which nobody else may {barred}; name a folder apart from it",
                folder.path.display(),
                part.key,
                part.provider
            );
            findings.push(error(folder.key, message));
        }
    }
}

fn parts(loaded: &Loaded) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (provider, config) in &loaded.config.providers {
        let Some(program) = &config.program else {
            continue;
        };
        let work = if program.read_only {
            Use::Read
        } else {
            Use::Work
        };
        let mut add = |key: String, used, path: &Path| {
            let path = loaded.resolve(path);
            parts.push(Part {
                provider,
                key,
                used,
                reached: Reached::by(&path),
                path,
            });
        };
        add(PROGRAM.to_owned(), Use::Own, &program.path);
        add("home".to_owned(), Use::Home, &program.home);
        add("folder".to_owned(), work, &program.folder);
        for (index, folder) in program.read_folders.iter().enumerate() {
            add(format!("readFolders[{index}]"), Use::Own, folder);
        }
    }
    parts
}

/// Returns the folders that components may read or write.
fn of_components(loaded: &Loaded) -> Vec<Granted<'_>> {
    let mut granted = Vec::new();
    for (component, config) in &loaded.config.components {
        for (index, grant) in config.directories.iter().enumerate() {
            // What is no path is told of by itself.
            if let Ok(pattern) = FolderPattern::parse(&loaded.resolve(&grant.path)) {
                granted.push(Granted {
                    provider: None,
                    key: format!("components.{component}.directories[{index}].path"),
                    access: grant.access,
                    reached: Reached::by(&pattern.base),
                    path: pattern.base,
                });
            }
        }
    }
    granted
}

/// Returns the folders that programs may read or write.
fn of_programs(loaded: &Loaded) -> Vec<Granted<'_>> {
    let parts = parts(loaded).into_iter();
    let folders = parts.filter(|part| part.key != PROGRAM);
    let granted = folders.map(|part| Granted {
        provider: Some(part.provider),
        key: format!("providers.{}.program.{}", part.provider, part.key),
        access: match part.used {
            Use::Home | Use::Work => Access::ReadWrite,
            Use::Own | Use::Read => Access::ReadOnly,
        },
        path: part.path,
        reached: part.reached,
    });
    granted.collect()
}

impl Part<'_> {
    /// Returns whether somebody who has a folder may change it or what it is reached through, or
    /// may read it though it is secret.
    fn is_open_to(&self, folder: &Granted<'_>) -> bool {
        if folder.access == Access::ReadOnly && self.used != Use::Home {
            return false;
        }
        let is_within = self.reached.is_in(&folder.reached);
        let is_around = folder.reached.is_in(&self.reached);
        match self.used {
            Use::Own | Use::Home => is_within || is_around,
            // The same folder may be worked in by several.
            Use::Work => is_within != is_around,
            Use::Read => is_within && !is_around,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::check::check;
    use crate::config::finding::Severity;
    use crate::config::load;

    /// Returns the keys of the errors that tell of somebody who reads or writes what is another's,
    /// in a folder with all that is named here, a program `p` in it, and more of the configuration.
    fn reported(more: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for made in ["tools", "homes", "work/in", "other", "plugins"] {
            std::fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        for made in ["tools/claude", "plugins/c"] {
            std::fs::write(folder.path().join(made), "").unwrap();
        }
        let file = folder.path().join("c.toml");
        let text = format!(
            "[server]\ndataDir = \"/nowhere/data\"\n[providers.p]\nkind = \"claude-cli\"\n\
             program = {{ path = \"tools/claude\", folder = \"work\", home = \"homes\" }}\n\
             {more}\n"
        );
        std::fs::write(&file, text).unwrap();
        let findings = check(&load(&file, []).unwrap()).into_iter();
        findings
            .filter(|found| found.severity == Severity::Error)
            .filter(|found| found.message.contains("which nobody else may "))
            .map(|found| found.key)
            .collect()
    }

    fn component(path: &str, access: &str) -> String {
        format!(
            "[components.c]\npath = \"plugins/c\"\n\
             directories = [{{ path = \"{path}\", at = \"/w\", access = \"{access}\" }}]"
        )
    }

    #[test]
    fn no_component_writes_what_a_program_is_started_from() {
        let key = "components.c.directories[0].path";
        for path in ["tools", "homes", "homes/a/home", ".", "work/in"] {
            assert_eq!(reported(&component(path, "read-write")), [key], "{path}");
        }
        for (path, access) in [
            ("work", "read-write"),
            ("other", "read-write"),
            ("tools", "read-only"),
        ] {
            assert!(
                reported(&component(path, access)).is_empty(),
                "{path} {access}"
            );
        }
    }

    #[test]
    fn nobody_reads_the_home_of_a_program_with_its_login() {
        for path in ["homes", "homes/a/home", "homes/{user}", "."] {
            let reported = reported(&component(path, "read-only"));
            assert_eq!(reported, ["components.c.directories[0].path"], "{path}");
        }
        let other = |folder: &str, more: &str| {
            format!(
                "[providers.q]\nkind = \"codex-cli\"\nprogram = {{ path = \"tools/claude\", \
                 folder = \"{folder}\", home = \"q\", {more} }}"
            )
        };
        for folder in ["homes", "homes/a", "."] {
            let keys = reported(&other("other", &format!("readFolders = [\"{folder}\"]")));
            assert!(
                keys.contains(&"providers.q.program.readFolders[0]".to_owned()),
                "{folder}: {keys:?}"
            );
        }
        let keys = reported(&other("homes/a", "readOnly = true"));
        let both = ["providers.p.program.home", "providers.q.program.folder"];
        assert_eq!(keys, both);
        let apart = reported(&other(
            "other",
            "readOnly = true, readFolders = [\"tools\"]",
        ));
        assert!(apart.is_empty(), "{apart:?}");
    }

    #[test]
    fn no_program_writes_what_another_one_is_started_from() {
        let other = |folder: &str, home: &str, more: &str| {
            format!(
                "[providers.q]\nkind = \"codex-cli\"\nprogram = {{ path = \"tools/claude\", \
                 folder = \"{folder}\", home = \"{home}\"{more} }}"
            )
        };
        let folder = "providers.q.program.folder";
        let home = "providers.q.program.home";
        for (more, keys) in [
            (other("homes", "q", ""), vec![folder]),
            (other("tools", "q", ""), vec![folder]),
            (
                other("work/in", "q", ""),
                vec!["providers.p.program.folder", folder],
            ),
            (
                other("other", "homes", ""),
                vec!["providers.p.program.home", home],
            ),
            (other("work", "q", ""), vec![]),
            (
                other("work/in", "q", ", readOnly = true"),
                vec!["providers.p.program.folder"],
            ),
        ] {
            assert_eq!(reported(&more), keys, "{more}");
        }
    }
}
