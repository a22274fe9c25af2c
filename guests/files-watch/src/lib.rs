//! The trigger that tells an agent of files that changed.

use agent_host_sdk::{
    ChangeKind, FileChange, FileChanges, FireContext, Trigger, TriggerDescription, TriggerError,
    TriggerEvent, TriggerEventKind, TriggerRun, TriggerState, export_trigger,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The trigger.
#[derive(Debug, Clone, Copy)]
pub struct FilesWatch;

/// Its configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Configuration {
    /// Kinds of changes that are of interest; all of them if there is none.
    only: Vec<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Created,
    Changed,
    Removed,
    Renamed,
}

impl Kind {
    fn of(change: ChangeKind) -> Self {
        match change {
            ChangeKind::Created => Self::Created,
            ChangeKind::Changed => Self::Changed,
            ChangeKind::Removed => Self::Removed,
            ChangeKind::Renamed => Self::Renamed,
        }
    }
}

impl Trigger for FilesWatch {
    fn describe(&self) -> TriggerDescription {
        TriggerDescription::new(
            "files-watch",
            "Tells an agent of files that changed.",
            [TriggerEventKind::Files],
        )
        .configured_by::<Configuration>()
    }

    fn fire(
        &self,
        context: &FireContext,
        _: Option<&TriggerState>,
        trigger_event: &TriggerEvent,
    ) -> Result<TriggerRun, TriggerError> {
        let TriggerEvent::Files(files) = trigger_event else {
            let other = trigger_event.kind().as_str();
            return Err(TriggerError::Rejected(format!(
                "files that changed are no trigger event of the kind `{other}`"
            )));
        };
        let Configuration { only } = context.configured()?;
        let is_meant =
            |change: &&FileChange| only.is_empty() || only.contains(&Kind::of(change.kind));
        let meant: Vec<&FileChange> = files.changes.iter().filter(is_meant).collect();
        if meant.is_empty() && files.more == 0 {
            return Ok(TriggerRun::nothing());
        }
        let list = listed(files, &meant);
        Ok(TriggerRun::message(match &context.message {
            Some(message) => format!("{message}\n\n{list}"),
            None => list,
        }))
    }
}

/// The changes in words.
fn listed(files: &FileChanges, changes: &[&FileChange]) -> String {
    let mut lines = vec![format!("Files changed in `{}`:", files.folder)];
    lines.extend(changes.iter().map(|change| line(change)));
    if files.more > 0 {
        lines.push(format!(
            "- and {} changes more, which are not listed",
            files.more
        ));
    }
    lines.join("\n")
}

fn line(change: &FileChange) -> String {
    let path = &change.path;
    let size = change
        .size
        .map(|size| format!(" ({size} bytes)"))
        .unwrap_or_default();
    match (change.kind, &change.was) {
        (ChangeKind::Created, _) => format!("- created `{path}`{size}"),
        (ChangeKind::Changed, _) => format!("- changed `{path}`{size}"),
        (ChangeKind::Removed, _) => format!("- removed `{path}`"),
        (ChangeKind::Renamed, Some(was)) => format!("- renamed `{was}` to `{path}`{size}"),
        (ChangeKind::Renamed, None) => format!("- renamed something to `{path}`{size}"),
    }
}

export_trigger!(FilesWatch);

#[cfg(test)]
mod tests {
    use super::*;
    use agent_host_sdk::harness::TriggerRuns;
    use serde_json::json;

    fn changes(more: u32) -> TriggerEvent {
        let change = |kind, path: &str, was: Option<&str>| FileChange {
            kind,
            path: path.to_owned(),
            was: was.map(str::to_owned),
            size: (kind != ChangeKind::Removed).then_some(12),
        };
        TriggerEvent::Files(FileChanges {
            folder: "/inbox".to_owned(),
            changes: vec![
                change(ChangeKind::Created, "a.txt", None),
                change(ChangeKind::Removed, "b.txt", None),
                change(ChangeKind::Renamed, "d.txt", Some("c.txt")),
            ],
            more,
        })
    }

    fn said(trigger_run: &TriggerRun) -> &str {
        let [message] = &trigger_run.messages[..] else {
            panic!("{trigger_run:?}")
        };
        &message.text
    }

    #[test]
    fn changes_are_listed_after_the_operators_words() {
        let trigger_run = TriggerRuns::of(FilesWatch)
            .saying("Sort these.")
            .fire(&changes(7))
            .unwrap();
        assert_eq!(
            said(&trigger_run),
            "Sort these.\n\nFiles changed in `/inbox`:\n- created `a.txt` (12 bytes)\n- removed \
             `b.txt`\n- renamed `c.txt` to `d.txt` (12 bytes)\n- and 7 changes more, which are not \
             listed"
        );
    }

    #[test]
    fn kinds_of_changes_that_are_not_meant_are_left_out() {
        let only = |kind: &str| TriggerRuns::of(FilesWatch).configured(json!({ "only": [kind] }));
        let trigger_run = only("removed").fire(&changes(0)).unwrap();
        assert_eq!(
            said(&trigger_run),
            "Files changed in `/inbox`:\n- removed `b.txt`"
        );
        let trigger_run = only("changed").fire(&changes(0)).unwrap();
        assert_eq!(trigger_run, TriggerRun::nothing());
    }
}
