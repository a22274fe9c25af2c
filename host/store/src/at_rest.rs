//! Reads of a store that no process has open. The database stays unchanged: it is neither migrated
//! nor written.

use crate::open::{DATABASE, DataDir, OpenError, assert_sqlite, readable};
use crate::read::components::newest_admissions;
use crate::read::kept::{Kept, kept};
use crate::readers::connect;
use crate::schema;
use crate::sql::{self, Sql};
use domain::event::ComponentAdmitted;
use std::path::Path;

/// Returns the newest recorded admission of each of these components, read from the database of a
/// data directory. None if there is no database.
///
/// # Errors
/// [`OpenError::Locked`] while another process has it open; otherwise the reason why it cannot be
/// read.
pub fn admissions_at_rest(
    dir: &Path,
    components: &[String],
) -> Result<Vec<ComponentAdmitted>, OpenError> {
    read_at_rest(dir, |sql| newest_admissions(sql, components))
}

/// Returns all that is kept under names of the configuration, by the database of a data directory.
/// Nothing where there is no database.
///
/// # Errors
/// [`OpenError::Locked`] while another process has it open; otherwise the reason why it cannot be
/// read.
pub fn kept_at_rest(dir: &Path) -> Result<Kept, OpenError> {
    read_at_rest(dir, kept)
}

fn read_at_rest<T: Default>(
    dir: &Path,
    read: impl FnOnce(&Sql<'_>) -> sql::Result<T>,
) -> Result<T, OpenError> {
    let path = dir.join(DATABASE);
    let is_there = path.try_exists();
    if !is_there.map_err(|error| OpenError::io("read", &path, error))? {
        return Ok(T::default());
    }
    assert_sqlite()?;
    let _locked = DataDir::lock(dir)?;
    let failed = |error| OpenError::database(&path, error);
    let connection = connect(&path).map_err(failed)?;
    if schema::version(&connection).map_err(failed)? == 0 {
        // A first start was broken off.
        return Ok(T::default());
    }
    readable(&connection, &path)?;
    read(&Sql::new(&connection)).map_err(failed)
}
