//! Checks of the programs that answer in a model's place.

mod writers;

use super::directories::dangerous;
use super::document::Loaded;
use super::finding::{Finding, error, warning};
use super::locations;
use super::trusted::own_of_host;
use domain::grant::Access;
use std::path::Path;

/// Finds folders that no program should have, programs that are switched off though a model needs
/// them, and what of their confinement this system does not enforce.
pub(super) fn check(loaded: &Loaded, findings: &mut Vec<Finding>) {
    writers::check(loaded, findings);
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
