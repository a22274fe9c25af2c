//! The order of work items: trigger events, inbound and outbound messages.

use crate::sql::{self, Args, Sql, args};

/// The table of one kind of work items. Of a source, which is a chat or a trigger, the oldest open
/// item is the first, and the others wait for it.
pub(crate) struct OpenItems {
    /// The statement for the two oldest open items of a source: where each is, and whether it is
    /// marked as the first.
    pub(super) two_oldest: &'static str,
    /// The statement that marks one as the first, or no longer.
    pub(super) mark: &'static str,
}

impl OpenItems {
    /// Marks the oldest open item of a source as the first, and no other. The item that was the
    /// first before is the second oldest, if an older one was opened.
    pub(crate) fn find_first(&self, sql: &Sql<'_>, source: impl Args) -> sql::Result<()> {
        let oldest = self.needs_oldest(sql, source)?;
        for (place, (position, is_first)) in oldest.into_iter().enumerate() {
            if is_first != (place == 0) {
                sql.execute(self.mark, args![position, !is_first])?;
            }
        }
        Ok(())
    }

    fn needs_oldest(&self, sql: &Sql<'_>, source: impl Args) -> sql::Result<Vec<(u64, bool)>> {
        sql.all(self.two_oldest, source)
    }
}
