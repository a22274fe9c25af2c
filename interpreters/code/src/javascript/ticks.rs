//! Looks at the clock within loops that the engine itself runs.
//!
//! Code that follows an `await` or stands in a `then` is called by the engine and has no slices.
//! Each `while`, `do` and `for` of a program with such parts therefore asks for the time in its
//! condition, and an error that the program cannot catch ends it when its time is up. Text is only
//! inserted within lines, so lines stay what they were, and columns are counted back.

use super::places::{Changed, Insert, Place};
use super::reader::{self, Condition};
use super::world::World;
use boa_engine::object::FunctionObjectBuilder;
use boa_engine::property::Attribute;
use boa_engine::{
    Context, EngineError, JsError, JsObject, JsResult, JsString, JsValue, NativeFunction,
    RuntimeLimitError, js_string,
};

/// The function that looks at the clock. It returns true.
const TICK: &str = "__agent_host_tick";
/// Words of programs that have the engine call parts of them later.
const LATER: [&str; 5] = ["await", ".then", ".catch", ".finally", "queueMicrotask"];

/// Returns a program whose loops look at the clock. None for one that needs none of that, and for
/// one that cannot be read here.
pub(super) fn insert(code: &str) -> Option<Changed> {
    if !LATER.iter().any(|word| code.contains(word)) {
        return None;
    }
    let conditions = reader::conditions(code)?;
    if conditions.is_empty() {
        return None;
    }
    let mut ticking = Changed {
        code: String::new(),
        inserts: Vec::new(),
    };
    let mut done = 0;
    let mut line = 1;
    let mut column = 1;
    for Condition { at, is_empty } in conditions {
        let chunk = code.get(done..at)?;
        done = at;
        if let Some((above, last)) = chunk.rsplit_once('\n') {
            line += above.matches('\n').count() + 1;
            column = last.chars().count() + 1;
        } else {
            column += chunk.chars().count();
        }
        let comma = if is_empty { "" } else { "," };
        let call = format!("{TICK}(){comma}");
        ticking.inserts.push(Insert {
            before: Place {
                line: u32::try_from(line).ok()?,
                column: u32::try_from(column).ok()?,
            },
            width: u32::try_from(call.len()).ok()?,
        });
        ticking.code.push_str(chunk);
        ticking.code.push_str(&call);
    }
    ticking.code.push_str(code.get(done..)?);
    Some(ticking)
}

/// Defines the function that looks at the clock, and has functions write themselves down without
/// it.
pub(super) fn install(context: &mut Context) -> JsResult<()> {
    let function =
        FunctionObjectBuilder::new(context.realm(), NativeFunction::from_fn_ptr(tick)).build();
    let attribute = Attribute::READONLY | Attribute::NON_ENUMERABLE | Attribute::PERMANENT;
    context.register_global_property(js_string!(TICK), function, attribute)?;

    let prototype = context.intrinsics().constructors().function().prototype();
    let name = js_string!("toString");
    if let Some(own) = prototype.get(name.clone(), context)?.as_callable() {
        let text = NativeFunction::from_copy_closure_with_captures(text_without_polls, own);
        let text = FunctionObjectBuilder::new(context.realm(), text)
            .name(name.clone())
            .build();
        prototype.set(name, text, true, context)?;
    }
    Ok(())
}

/// Returns the text of a function as the program has it.
fn text_without_polls(
    this: &JsValue,
    args: &[JsValue],
    own: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let value = own.call(this, args, context)?;
    let text = value
        .as_string()
        .as_ref()
        .map(JsString::to_std_string_lossy);
    let Some(text) = text.filter(|text| text.contains(TICK)) else {
        return Ok(value);
    };
    let text = text.replace(&format!("{TICK}(),"), "");
    let text = text.replace(&format!("{TICK}()"), "");
    Ok(JsValue::from(js_string!(text)))
}

fn tick(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    if World::from_context(context).is_some_and(|world| world.clock.is_over()) {
        return Err(RuntimeLimitError::LoopIteration.into());
    }
    Ok(JsValue::from(true))
}

/// Returns whether an error is that of a loop whose program's time was up. The engine's own limit
/// of iterations is never set.
pub(super) fn is_time_up(error: &JsError) -> bool {
    matches!(
        error.as_engine(),
        Some(EngineError::RuntimeLimit(RuntimeLimitError::LoopIteration))
    )
}

#[cfg(test)]
mod tests;
