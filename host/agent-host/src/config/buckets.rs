//! Checks of the buckets that a component is granted.

use super::finding::{Finding, error};
use domain::grant::BucketGrant;
use std::collections::BTreeSet;

/// Names that no bucket can have, and buckets that are granted twice.
pub(super) fn check(component: &str, granted: &[BucketGrant], findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for (index, grant) in granted.iter().enumerate() {
        let key = format!("components.{component}.keyValue[{index}]");
        if let Err(wrong) = BucketGrant::check_name(&grant.bucket) {
            findings.push(error(
                format!("{key}.bucket"),
                format!("`{}`: {wrong}", grant.bucket),
            ));
        }
        if !seen.insert(&grant.bucket) {
            let message = format!(
                "`{}` is granted twice: a component opens it by this name, with one scope and one \
                 access",
                grant.bucket
            );
            findings.push(error(format!("{key}.bucket"), message));
        }
    }
}
