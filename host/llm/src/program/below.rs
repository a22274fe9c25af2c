//! The processes below another one, as the system lists them.

/// One process of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its id.
    pub(crate) id: i32,
    /// Its parent's id.
    pub(crate) parent: i32,
    /// Pages of memory that it has.
    pub(crate) pages: u64,
}

/// Places of the fields behind a process's name in `/proc/<id>/stat`, counted from 0.
const PARENT: usize = 1;
/// The place of its pages of memory.
const PAGES: usize = 21;

/// Reads a line of `/proc/<id>/stat`; none if it is not one. A process's name may hold anything,
/// blanks and parentheses included.
pub(crate) fn parse(stat: &str) -> Option<Listed> {
    let (id, rest) = stat.split_once(' ')?;
    let (_, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Listed {
        id: id.parse().ok()?,
        parent: fields.get(PARENT)?.parse().ok()?,
        pages: fields.get(PAGES)?.parse().ok()?,
    })
}

/// Returns the processes below one, in any depth and without itself.
pub(crate) fn below(root: i32, all: &[Listed]) -> Vec<Listed> {
    let mut found: Vec<Listed> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for listed in all {
            let is_new = listed.parent == parent
                && listed.id != root
                && found.iter().all(|known| known.id != listed.id);
            if is_new {
                found.push(*listed);
                parents.push(listed.id);
            }
        }
    }
    found
}

/// Returns all processes of the system; none of them where it does not list them in `/proc`.
pub(crate) fn all() -> Vec<Listed> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            name.to_string_lossy()
                .bytes()
                .all(|byte| byte.is_ascii_digit())
        })
        // A process may be gone by now.
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|stat| parse(&stat))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Listed, all, below, parse};

    fn listed(id: i32, parent: i32) -> Listed {
        Listed {
            id,
            parent,
            pages: 1,
        }
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let rest = "S 7 12 12 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 99 4096 321 1844 1 1";
        for name in ["sh", "a b", "evil) R 1 (x"] {
            let read = parse(&format!("12 ({name}) {rest}")).unwrap();
            let expected = Listed {
                id: 12,
                parent: 7,
                pages: 321,
            };
            assert_eq!(read, expected, "{name}");
        }
        for broken in ["", "12", "12 (sh", "12 (sh) S", "x (sh) S 1"] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn grandchildren_are_found_and_others_are_not() {
        let all = [
            listed(1, 0),
            listed(10, 1),
            listed(11, 10),
            listed(12, 11),
            listed(20, 1),
        ];
        let mut found: Vec<i32> = below(10, &all).iter().map(|listed| listed.id).collect();
        found.sort_unstable();
        assert_eq!(found, [11, 12]);
        assert_eq!(below(12, &all), []);
    }

    #[test]
    fn a_list_that_changed_while_it_was_read_ends_all_the_same() {
        let circle = [listed(10, 12), listed(11, 10), listed(12, 11)];
        assert_eq!(below(10, &circle).len(), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_among_those_of_the_system() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all().iter().any(|listed| listed.id == own));
    }
}
