//! Calls that a model makes again and again although they fail in the same way.

use super::Called;
use crate::driver::scope::Scope;
use domain::delegate;
use domain::message::Message;
use domain::run;
use domain::run::repeated::REPEATS_MAX;
use domain::shown::visible;
use domain::tool::EffectClass;
use std::sync::Arc;

/// Characters that are repeated of the error of a call that is not made again.
const ERROR_CHARS_SHOWN: usize = 400;

/// Returns the words for a model's call that is not made, since it failed in the same way too
/// often.
pub(super) fn repeated(scope: &Scope<'_>, called: &Called<'_>) -> Option<String> {
    let may_change = |name: &str, arguments: &str| {
        let tool = scope.config.tool(name);
        match scope.config.operation_named(name) {
            Some(rule) => !delegate::is_read_only(&delegate::arguments_of_named(rule, arguments)),
            None if name == delegate::NAME => !delegate::is_read_only(arguments),
            None => tool.is_none_or(|tool| tool.effect != EffectClass::ReadOnly),
        }
    };
    let of_run = scope.driving.run.messages.iter().map(Arc::as_ref);
    let messages: Vec<&Message> = of_run.chain(&scope.intake.heard).collect();
    let name = called.operation.map_or(called.tool, |rule| rule.name);
    let error = run::repeated::repeated(&messages, name, called.arguments, may_change)?;
    Some(format!(
        "this call failed in the same way {REPEATS_MAX} times in this turn, so it was not made \
         again. Change its arguments, do something else, or tell the user what is wrong. The \
         error was: {}",
        visible(&error, ERROR_CHARS_SHOWN)
    ))
}
