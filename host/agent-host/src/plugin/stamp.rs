//! `plugin stamp`: writes a manifest into a component, for languages whose compilers write none.

use crate::answer::Answer;
use crate::cli::Stamp;
use crate::failure::{Exit, Failure};
use anyhow::{Context, Error, anyhow};
use domain::digest::Digest;
use domain::manifest::Manifest;
use domain::shown::visible;
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Characters that are shown of a place in a manifest: it may be a key of that file.
const PLACE_CHARS_MAX: usize = 100;
/// The permissions of a new file, less the umask.
const FILE_MODE: u32 = 0o666;

/// Runs the command.
///
/// # Errors
/// A file cannot be read or written, the manifest is not sound, or the component is none. Then
/// nothing is written.
pub(crate) fn run(stamp: &Stamp) -> Result<Answer, Failure> {
    let manifest = manifest_in(&stamp.manifest)?;
    let code = read(&stamp.file)?;
    let stamped = runtime::stamped(&code, &manifest).map_err(|refused| {
        let file = stamp.file.display();
        let error = Error::new(refused).context(format!("`{file}` takes no manifest"));
        Failure::new(Exit::Usage, error).advise("name what the build of the component has written")
    })?;
    let out = stamp.out.as_ref().unwrap_or(&stamp.file).as_path();
    write(out, &stamped).with_context(|| format!("cannot write `{}`", out.display()))?;
    let digest = Digest::of(&stamped).reference();
    let file = out.display().to_string();
    let document = json!({ "file": file, "digest": digest, "manifest": manifest });
    let line = format!("{file}: carries the manifest now, {digest}");
    Ok(Answer::line(document, line))
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))
}

fn manifest_in(file: &Path) -> Result<Manifest, Failure> {
    let bytes = read(file)?;
    Manifest::parse(&bytes).map_err(|fault| {
        let place = misformed(&bytes).map_or_else(String::new, |at| format!(" at `{at}`"));
        let error = anyhow!("`{}`{place}: {fault}", file.display());
        let advice = "`agent-host plugin stamp --help` has a manifest with every field";
        Failure::new(Exit::Usage, error).advise(advice)
    })
}

/// Returns the field whose value is of another form. The fault of such a manifest does not name it.
fn misformed(manifest: &[u8]) -> Option<String> {
    let mut reader = serde_json::Deserializer::from_slice(manifest);
    let fault = serde_path_to_error::deserialize::<_, Manifest>(&mut reader).err()?;
    let place = fault.path().to_string();
    (place != ".").then(|| visible(&place, PLACE_CHARS_MAX))
}

/// Writes a file whole or not at all, because a host may load it meanwhile.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let mut work = tempfile::Builder::new()
        .prefix(".agent-host-stamp-")
        .permissions(fs::Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    work.write_all(bytes)?;
    work.persist(file).map(drop).map_err(|failed| failed.error)
}

#[cfg(test)]
mod tests {
    use super::{Stamp, manifest_in, run};
    use crate::cli::STAMP_HELP;
    use crate::failure::Exit;
    use domain::manifest::Manifest;

    #[test]
    fn the_help_has_a_sound_manifest() {
        let from = STAMP_HELP.find("  {\n").unwrap();
        let to = STAMP_HELP.rfind("  }\n").unwrap() + "  }\n".len();
        let manifest = Manifest::parse(&STAMP_HELP.as_bytes()[from..to]).unwrap();
        let wants = manifest.wants;
        assert_eq!(
            [
                wants.hosts.len(),
                wants.folders.len(),
                wants.buckets.len(),
                wants.secrets.len()
            ],
            [1; 4]
        );
    }

    #[test]
    fn a_bad_manifest_is_refused_by_its_field_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("plugin.wasm"), b"\0asm\x0d\0\x01\0").unwrap();
        let folders = |access: &str, path: &str| {
            format!(
                r#"{{"manifest":1,"wants":{{"folders":[{{"at":"{path}","access":"{access}","reason":""}}]}}}}"#
            )
        };
        for (manifest, field) in [
            (r#"{"manifest":1,"version":2}"#.to_owned(), "`version`"),
            (r#"{"manifest":1,"licens":"MIT"}"#.to_owned(), "`licens`"),
            (folders("all", "/a"), "`wants.folders[0].access`"),
            (folders("read-only", "a"), "`wants.folders[0].at`"),
        ] {
            std::fs::write(at("manifest.json"), manifest).unwrap();
            let stamp = Stamp {
                file: at("plugin.wasm"),
                manifest: at("manifest.json"),
                out: None,
            };
            let failure = run(&stamp).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            let error = failure.error.to_string();
            assert!(error.contains(field), "{error}");
            assert_eq!(std::fs::read(at("plugin.wasm")).unwrap().len(), 8);
        }
        std::fs::write(at("manifest.json"), folders("read-only", "/a")).unwrap();
        assert!(manifest_in(&at("manifest.json")).is_ok());
    }
}
