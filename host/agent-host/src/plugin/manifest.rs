//! Findings on the manifest that a component carries.

use super::finding::Finding;
use domain::grant::capability;
use domain::manifest::{BadManifest, Manifest, Wants};
use runtime::Described;

/// The place of all of them.
const MANIFEST: &str = "manifest";

/// Returns the findings on a manifest; nothing when there is none.
pub(crate) fn findings(
    manifest: Option<Result<&Manifest, &BadManifest>>,
    described: &Described,
) -> Vec<Finding> {
    match (manifest, described) {
        (None, _) => Vec::new(),
        (Some(Err(fault)), _) => vec![Finding::warning(
            MANIFEST,
            format!("it is not read: {fault}"),
            "mend the section `agent-host:manifest`; the component is loaded as if it had none",
        )],
        (Some(Ok(manifest)), Described::Agent(_)) if !manifest.wants.is_empty() => {
            vec![Finding::warning(
                MANIFEST,
                "it wants grants, and an agent is granted none of them",
                "leave `wants` out, and put it into the tools that the agent calls",
            )]
        }
        (Some(Ok(_)), Described::Agent(_)) => Vec::new(),
        (Some(Ok(manifest)), Described::Trigger(_)) => {
            let Wants {
                hosts,
                folders: _,
                buckets,
                secrets,
            } = &manifest.wants;
            let is_fit = hosts.is_empty() && buckets.is_empty() && secrets.is_empty();
            unfit(
                is_fit,
                "a trigger has use for folders alone, in which the host looks for it",
            )
        }
        (Some(Ok(manifest)), Described::Connector(_)) => {
            let is_fit = manifest.wants.folders.is_empty() && manifest.wants.buckets.is_empty();
            unfit(is_fit, "a connector has use for hosts and secrets alone")
        }
        (Some(Ok(manifest)), Described::Tools(tools)) => {
            let declared: Vec<&str> = tools
                .iter()
                .flat_map(|tool| &tool.capabilities)
                .map(String::as_str)
                .collect();
            undeclared(&manifest.wants, &declared)
        }
    }
}

/// Returns the finding on wants that a component has no use for.
fn unfit(is_fit: bool, why: &str) -> Vec<Finding> {
    let finding = || {
        let what = format!("it wants grants of other kinds: {why}");
        Finding::warning(MANIFEST, what, "take those wants out")
    };
    (!is_fit).then(finding).into_iter().collect()
}

/// Returns the wants that no tool declares a capability for.
fn undeclared(wants: &Wants, declared: &[&str]) -> Vec<Finding> {
    let has = |names: &[&str]| declared.iter().any(|name| names.contains(name));
    let files = [capability::FILES_READ, capability::FILES_WRITE];
    let mut missing = Vec::new();
    if !wants.hosts.is_empty() && !has(&[capability::NET_HTTP]) {
        missing.push(("hosts", capability::NET_HTTP.to_owned()));
    }
    if !wants.folders.is_empty() && !has(&files) {
        missing.push(("folders", files.join("` or `")));
    }
    if !wants.secrets.is_empty() && !has(&[capability::SECRETS_USE]) {
        missing.push(("secrets", capability::SECRETS_USE.to_owned()));
    }
    for bucket in &wants.buckets {
        let names = ["read", "write"].map(|verb| format!("{}.{verb}", bucket.bucket));
        if !declared
            .iter()
            .any(|name| names.iter().any(|own| own == name))
        {
            missing.push(("buckets", names.join("` or `")));
        }
    }
    let finding = |(list, capability): (&str, String)| {
        Finding::warning(
            MANIFEST,
            format!("it wants {list}, and no tool declares `{capability}`"),
            "declare it in `capabilities` of the tool that uses it, or take the want out",
        )
    };
    missing.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::undeclared;
    use domain::manifest::Manifest;

    #[test]
    fn a_want_without_a_capability_is_told() {
        let manifest = br#"{"manifest":1,"wants":{
            "hosts":[{"host":"a.example.com","reason":""}],
            "folders":[{"at":"/w","access":"read-only","reason":""}],
            "buckets":[{"bucket":"b","access":"read-only","reason":""}],
            "secrets":[{"secret":"s","host":"a.example.com","header":"x","reason":""}]
        }}"#;
        let wants = Manifest::parse(manifest).unwrap().wants;
        assert_eq!(undeclared(&wants, &[]).len(), 4);
        let declared = ["net.http", "files.write", "b.read", "secrets.use"];
        assert!(undeclared(&wants, &declared).is_empty());
    }
}
