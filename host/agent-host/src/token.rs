//! The bearer token: created on the first run, and readable by its owner alone.

use crate::failure::{Exit, Failure};
use anyhow::{Context, anyhow};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Minimum number of characters of a token, even of one that was written by hand.
const TOKEN_CHARS_MIN: usize = 32;

/// The variable with a credential for commands that ask a running host: its token, an API key, or a
/// trusted issuer's token.
pub(crate) const TOKEN_VARIABLE: &str = "AGENT_HOST_TOKEN";

/// Returns the credential that the environment names for commands; none when it names none, and the
/// host's own token is meant.
///
/// # Errors
/// The value is no possible credential.
pub(crate) fn of_environment() -> Result<Option<String>, Failure> {
    match std::env::var_os(TOKEN_VARIABLE) {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) => credential(value.to_str().unwrap_or_default()).map(Some),
    }
}

fn credential(value: &str) -> Result<String, Failure> {
    let token = value.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let error = anyhow!(
            "${TOKEN_VARIABLE} holds no credential: it has characters that are not visible ASCII"
        );
        return Err(Failure::new(Exit::Usage, error).advise(format!("unset {TOKEN_VARIABLE}")));
    }
    Ok(token.to_owned())
}

/// The token in a file; makes one when the file is not there.
pub(crate) fn get_or_make(file: &Path) -> Result<String, Failure> {
    match read(file) {
        Err(failure) if is_missing(&failure) => make(file).map_err(Failure::from),
        result => result,
    }
}

/// The token in a file.
///
/// # Errors
/// It is not there, others may read it, or it is too short to be one.
pub(crate) fn read(file: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the token in `{}`", file.display()))?;
    let mode = fs::metadata(file)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let error = anyhow!(
            "others may read the token in `{}` (mode {mode:o})",
            file.display()
        );
        return Err(
            Failure::new(Exit::Usage, error).advise(format!("chmod 600 {}", file.display()))
        );
    }
    let token = text.trim().to_owned();
    if token.len() < TOKEN_CHARS_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let error = anyhow!(
            "`{}` holds no token of at least {TOKEN_CHARS_MIN} visible characters",
            file.display()
        );
        return Err(Failure::new(Exit::Usage, error)
            .advise("remove the file; the next start makes a new one"));
    }
    Ok(token)
}

fn is_missing(failure: &Failure) -> bool {
    failure
        .error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns 32 random bytes in hexadecimal digits.
pub(crate) fn random() -> anyhow::Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut bytes))
        .context("there is no randomness for a token")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn make(file: &Path) -> anyhow::Result<String> {
    let token = random()?;
    let mut made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(|| format!("cannot make the token file `{}`", file.display()))?;
    writeln!(made, "{token}")
        .and_then(|()| made.sync_all())
        .with_context(|| format!("cannot write `{}`", file.display()))?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let token = get_or_make(&file).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(get_or_make(&file).unwrap(), token);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn what_is_no_credential_is_refused_and_not_repeated() {
        assert_eq!(credential(" ahk_x_y\n").unwrap(), "ahk_x_y");
        for wrong in [" ", "two words", "a\u{7f}b", "schl\u{fc}ssel"] {
            let failure = credential(wrong).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(
                !failure.lines().join(" ").contains(wrong.trim()) || wrong.trim().is_empty(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_token_that_others_may_read_or_that_is_too_short_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        get_or_make(&file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&file).unwrap_err().exit, Exit::Usage);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "short").unwrap();
        assert_eq!(read(&file).unwrap_err().exit, Exit::Usage);
    }
}
