//! The rule on the unit of the service: it is hardened, and takes nothing that the host needs.

/// Keys of a unit that break the host, each with the reason.
const BREAKING: [(&str, &str); 3] = [
    (
        "DynamicUser",
        "an id that is taken anew at each start owns no granted folder, and can write to none",
    ),
    (
        "MemoryDenyWriteExecute",
        "components are compiled to machine code, which needs memory that becomes executable",
    ),
    (
        "ProcSubset",
        "it hides the boot's id, without which the host's time is not carried to its next start",
    ),
];

/// Lines of the unit without which the host, or a program that it starts, may do more than it has
/// to.
const HARDENING: [&str; 9] = [
    "AmbientCapabilities=",
    "CapabilityBoundingSet=",
    "NoNewPrivileges=yes",
    "PrivateDevices=yes",
    "ProtectHome=yes",
    "ProtectSystem=strict",
    "RestrictNamespaces=yes",
    "SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self",
    "UMask=0077",
];

/// Returns what is wrong with the unit, given the file that declares the users of the system.
#[must_use]
pub fn check(unit: &str, users: &str) -> Vec<String> {
    let lines: Vec<&str> = unit.lines().map(str::trim).collect();
    let value = |key: &str| {
        lines.iter().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            (name == key).then_some(value)
        })
    };
    let mut findings = Vec::new();
    for (key, reason) in BREAKING {
        if value(key).is_some() {
            findings.push(format!("the unit has `{key}=`: {reason}"));
        }
    }
    for line in HARDENING {
        if !lines.contains(&line) {
            findings.push(format!("the unit has no `{line}`"));
        }
    }
    let declared: Vec<&str> = users
        .lines()
        .filter_map(|line| line.strip_prefix("u ")?.split_whitespace().next())
        .collect();
    match value("User") {
        None => findings.push("the unit names no user, and would run as root".to_owned()),
        Some(user) if !declared.contains(&user) => {
            findings.push(format!("no line declares the unit's user `{user}`"));
        }
        Some(user) if value("StateDirectory") != Some(user) => {
            findings.push(format!("the unit has no `StateDirectory={user}`"));
        }
        Some(_) => {}
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_breaks_the_host_or_frees_it_is_found() {
        let users = "# Users.\nu host - \"host\" /var/lib/host\n";
        let sound = format!(
            "# DynamicUser=yes\nUser=host\nStateDirectory=host\n{}\n",
            HARDENING.join("\n")
        );
        assert_eq!(check(&sound, users), Vec::<String>::new());
        for (key, _) in BREAKING {
            assert_eq!(
                check(&format!("{sound}{key}=yes\n"), users).len(),
                1,
                "{key}"
            );
        }
        for line in HARDENING {
            let without = sound.replace(&format!("{line}\n"), "");
            assert_eq!(check(&without, users).len(), 1, "{line}");
        }
        assert_eq!(check(&sound.replace("User=host\n", ""), users).len(), 1);
        assert_eq!(check(&sound, "u other -\n").len(), 1);
        assert_eq!(
            check(&sound.replace("StateDirectory", "Other"), users).len(),
            1
        );
    }
}
