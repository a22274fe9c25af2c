//! The operator's settings of the component: the variables that its grant gives it.

/// The source of settings.
#[derive(Debug, Clone)]
pub(crate) enum Settings {
    /// The variables of the component's `environment`.
    Granted,
    /// These, for a test.
    Given(Vec<(String, String)>),
}

impl Settings {
    /// The value of a setting, without spaces around it; none when it is missing or empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = match self {
            Self::Granted => granted(name),
            Self::Given(settings) => settings
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, value)| value.clone()),
        };
        let value = value?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a guest sees no variables but those that its grant gives it"
)]
fn granted(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
