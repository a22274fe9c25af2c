//! Checks of who may write what a program is started from, and where it lives and works.
//!
//! A program is executed outside of the sandbox, with what is in its home. Whoever may write there
//! decides what it does, and whoever may write around a folder can put a link in its place.

use crate::config::directories::Reached;
use crate::config::document::Loaded;
use crate::config::finding::{Finding, error};
use domain::grant::{Access, FolderPattern};
use std::path::{Path, PathBuf};

/// A use that a program makes of a file or folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is the program, is read by it, or is its home: nobody else writes there.
    Own,
    /// It works there, and others may too.
    Work,
    /// It reads there as in a working folder, which it does not write.
    Look,
}

/// A part of a program.
struct Part<'a> {
    provider: &'a str,
    /// The key below `providers.<name>.program`.
    key: String,
    used: Use,
    reached: Reached,
}

/// A folder that somebody may write.
struct Written<'a> {
    /// The provider whose program that is; none for a component.
    provider: Option<&'a str>,
    key: String,
    path: PathBuf,
    reached: Reached,
}

/// Finds folders in which a component or another program may write what a program is started from,
/// or through which one of its folders is reached.
pub(super) fn check(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let parts = parts(loaded);
    let mut written = granted(loaded);
    written.extend(of_programs(loaded));
    for writer in written {
        let mut others = parts
            .iter()
            .filter(|part| writer.provider != Some(part.provider));
        if let Some(part) = others.find(|part| part.is_open_to(&writer)) {
            let message = format!(
                "`{}` is written here, and it is, is in or holds `{}` of the program of \
                 `providers.{}`, which nobody else may change; name a folder apart from it",
                writer.path.display(),
                part.key,
                part.provider
            );
            findings.push(error(writer.key, message));
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
            Use::Look
        } else {
            Use::Work
        };
        let mut add = |key: String, used, path: &Path| {
            parts.push(Part {
                provider,
                key,
                used,
                reached: Reached::by(&loaded.resolve(path)),
            });
        };
        add("path".to_owned(), Use::Own, &program.path);
        add("home".to_owned(), Use::Own, &program.home);
        add("folder".to_owned(), work, &program.folder);
        for (index, folder) in program.read_folders.iter().enumerate() {
            add(format!("readFolders[{index}]"), Use::Own, folder);
        }
    }
    parts
}

/// Returns the folders that components may write.
fn granted(loaded: &Loaded) -> Vec<Written<'_>> {
    let mut granted = Vec::new();
    for (component, config) in &loaded.config.components {
        for (index, grant) in config.directories.iter().enumerate() {
            if grant.access == Access::ReadOnly {
                continue;
            }
            // What is no path is told of by itself.
            if let Ok(pattern) = FolderPattern::parse(&loaded.resolve(&grant.path)) {
                granted.push(Written {
                    provider: None,
                    key: format!("components.{component}.directories[{index}].path"),
                    reached: Reached::by(&pattern.base),
                    path: pattern.base,
                });
            }
        }
    }
    granted
}

/// Returns the folders that programs may write.
fn of_programs(loaded: &Loaded) -> Vec<Written<'_>> {
    let mut folders = Vec::new();
    for (provider, config) in &loaded.config.providers {
        let Some(program) = &config.program else {
            continue;
        };
        let work = (!program.read_only).then_some(("folder", &program.folder));
        for (field, folder) in work.into_iter().chain([("home", &program.home)]) {
            let path = loaded.resolve(folder);
            folders.push(Written {
                provider: Some(provider),
                key: format!("providers.{provider}.program.{field}"),
                reached: Reached::by(&path),
                path,
            });
        }
    }
    folders
}

impl Part<'_> {
    /// Returns whether somebody who writes there may change it, or what it is reached through.
    fn is_open_to(&self, writer: &Written<'_>) -> bool {
        let is_within = self.reached.is_in(&writer.reached);
        let is_around = writer.reached.is_in(&self.reached);
        match self.used {
            Use::Own => is_within || is_around,
            // The same folder may be worked in by several.
            Use::Work => is_within != is_around,
            Use::Look => is_within && !is_around,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::check::check;
    use crate::config::finding::Severity;
    use crate::config::load;

    /// Returns the keys of the errors that tell of two who write, in a folder with all that is
    /// named here, a program `p` in it, and more of the configuration.
    fn told(more: &str) -> Vec<String> {
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
            .filter(|found| found.message.contains("which nobody else may change"))
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
            assert_eq!(told(&component(path, "read-write")), [key], "{path}");
        }
        for (path, access) in [
            ("work", "read-write"),
            ("other", "read-write"),
            ("homes", "read-only"),
        ] {
            assert!(told(&component(path, access)).is_empty(), "{path} {access}");
        }
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
            assert_eq!(told(&more), keys, "{more}");
        }
    }
}
