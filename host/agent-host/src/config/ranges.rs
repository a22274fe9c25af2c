//! Configured numbers that are out of their ranges, as findings.

use super::finding::{Finding, error};
use domain::ranges::out_of_range;
use schemars::JsonSchema;
use serde::Serialize;

/// Finds every number of a section that is outside the range in its schema.
pub(super) fn check<T: JsonSchema + Serialize>(section: &str, values: &T) -> Vec<Finding> {
    let wrong = out_of_range(values).into_iter();
    wrong
        .map(|found| {
            let message = format!(
                "{} is out of its range: it must be from {} to {}",
                found.value, found.least, found.most
            );
            error(format!("{section}.{}", found.key), message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use domain::grant::GuestLimits;
    use domain::limits::TurnLimits;
    use schemars::JsonSchema;
    use serde::Serialize;

    /// The defaults are fine, and every number has both its bounds.
    fn whole<T: JsonSchema + Serialize + Default>() {
        assert!(check("x", &T::default()).is_empty());
        let schema = schemars::schema_for!(T);
        for (key, property) in schema.get("properties").unwrap().as_object().unwrap() {
            assert!(property.get("minimum").unwrap().as_u64().is_some(), "{key}");
            assert!(property.get("maximum").unwrap().as_u64().is_some(), "{key}");
        }
    }

    #[test]
    fn every_limit_of_servers_components_turns_and_models_has_a_range() {
        whole::<api::server::Limits>();
        whole::<GuestLimits>();
        whole::<TurnLimits>();
        whole::<llm::RetryLimits>();
        whole::<llm::Timeouts>();
        whole::<llm::BreakerLimits>();
        whole::<llm::ProgramLimits>();
    }

    #[test]
    fn a_number_out_of_its_range_is_named_with_the_range() {
        let limits = api::server::Limits {
            connections_max: usize::MAX,
            heartbeat_ms: 0,
            ..Default::default()
        };
        let found: Vec<String> = check("server.limits", &limits)
            .into_iter()
            .map(|found| format!("{}: {}", found.key, found.message))
            .collect();
        assert_eq!(
            found,
            [
                "server.limits.connectionsMax: 18446744073709551615 is out of its range: it must \
                 be from 1 to 1000000",
                "server.limits.heartbeatMs: 0 is out of its range: it must be from 1 to 3600000",
            ]
        );
    }
}
