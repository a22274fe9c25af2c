//! What can be wrong with the folders that a component is granted.

use super::check::{Finding, error};
use super::{Loaded, SecretSource};
use crate::invocation::quoted;
use domain::grant::{Access, DirectoryGrant};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Folders that are not there, or that hold what belongs to the host, and places for them that are none.
pub(super) fn check(loaded: &Loaded, component: &str, granted: &[DirectoryGrant], findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for (index, DirectoryGrant { path, at, access }) in granted.iter().enumerate() {
        let key = format!("components.{component}.directories[{index}]");
        let path = loaded.resolve(path);
        if !path.is_dir() {
            let message = format!("there is no folder `{}`; make it with: mkdir -p {}", path.display(), quoted(&path));
            findings.push(error(format!("{key}.path"), message));
        }
        if let Some(own) = own_of_host(loaded, &path, *access) {
            let message = format!("`{}` holds {own}, which no component may have; grant another folder", path.display());
            findings.push(error(format!("{key}.path"), message));
        }
        if !is_normal(at) {
            let message = format!("`{at}` must be a path such as `/workspace`: from `/` on, without `.`, `..` and doubled or trailing `/`");
            findings.push(error(format!("{key}.at"), message));
        }
        if !seen.insert(at) {
            findings.push(error(format!("{key}.at"), format!("`{at}` is granted twice")));
        }
    }
}

/// Whether there is no other way to write the same absolute path.
fn is_normal(at: &str) -> bool {
    let segments = |rest: &str| rest.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
    at == "/" || at.strip_prefix('/').is_some_and(segments)
}

/// What a folder would give away: something of the host's data, a secret, or the power to change the configuration.
fn own_of_host(loaded: &Loaded, granted: &Path, access: Access) -> Option<String> {
    let granted = Reached::by(granted).end;
    let data = Reached::by(&loaded.data_dir());
    if data.passes(&granted) || granted.starts_with(&data.end) {
        return Some(format!("data of the host (`server.dataDir` is `{}`)", data.end.display()));
    }
    if Reached::by(&loaded.token_file()).passes(&granted) {
        return Some("the token of the API".to_owned());
    }
    let keys = loaded.config.providers.iter().filter_map(|(name, provider)| Some((name, provider.api_key_file.as_ref()?)));
    for (name, file) in keys {
        if Reached::by(&loaded.resolve(file)).passes(&granted) {
            return Some(format!("the key of the provider `{name}`"));
        }
    }
    let secrets = loaded.config.secrets.iter().filter_map(|(name, source)| match source {
        SecretSource::File(file) => Some((name, file)),
        SecretSource::Env(_) | SecretSource::Command(_) => None,
    });
    for (name, file) in secrets {
        if Reached::by(&loaded.resolve(file)).passes(&granted) {
            return Some(format!("the secret `{name}`"));
        }
    }
    if access == Access::ReadOnly {
        return None;
    }
    if Reached::by(&loaded.file).passes(&granted) {
        return Some("the configuration itself".to_owned());
    }
    let components = loaded.config.components.iter().filter_map(|(name, component)| Some((name, component.path.as_ref()?)));
    let mut within = components.filter(|(_, file)| Reached::by(&loaded.resolve(file)).passes(&granted));
    within.next().map(|(name, _)| format!("the file of the component `{name}`"))
}

/// Where a path leads, and the links on the way, whose folder decides as well.
struct Reached {
    end: PathBuf,
    links: Vec<PathBuf>,
}

impl Reached {
    /// Follows a path as far as there is something, and goes by its names from there on.
    fn by(path: &Path) -> Self {
        // Only an empty path cannot be made absolute.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (mut end, mut links) = (PathBuf::new(), Vec::new());
        for component in path.components() {
            if component == Component::ParentDir {
                end.pop();
                continue;
            }
            end.push(component);
            if let Ok(real) = end.canonicalize()
                && real != end
            {
                links.push(std::mem::replace(&mut end, real));
            }
        }
        Self { end, links }
    }

    /// Whether it leads into a folder, or by a link in it, which whoever may write there can turn elsewhere.
    fn passes(&self, folder: &Path) -> bool {
        self.end.starts_with(folder) || self.links.iter().any(|link| link.starts_with(folder))
    }
}
