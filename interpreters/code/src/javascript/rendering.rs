//! Values as JSON and as text.
//!
//! The functions that write objects down are JavaScript themselves, so that a deep or endless value
//! meets the same limits as the program. They are read when the first object has to be written.

use super::own_source;
use super::world::World;
use crate::output::VALUE_BYTES_MAX;
use boa_engine::{Context, JsNativeError, JsObject, JsResult, JsString, JsValue, js_string};
use serde_json::Value;

/// The largest number up to which a number without a fraction is one whole number.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// A value in a form that leaves the sandbox.
pub(super) enum Rendered {
    /// There is no value.
    Nothing,
    /// It has a form in JSON that loses nothing.
    Json(Value),
    /// It has none.
    Text(String),
}

/// Renders the value of a program.
pub(super) fn render(value: &JsValue, world: &World, context: &mut Context) -> JsResult<Rendered> {
    if value.is_undefined() {
        return Ok(Rendered::Nothing);
    }
    let json = if value.is_object() {
        object(value, world, context)?
    } else {
        primitive(value)
    };
    if let Some(json) = json {
        return Ok(Rendered::Json(json));
    }
    let text = text_of(value, world, context)?;
    if text.len() <= VALUE_BYTES_MAX {
        return Ok(Rendered::Text(text));
    }
    let end = text.floor_char_boundary(VALUE_BYTES_MAX);
    let start = text.get(..end).unwrap_or_default();
    Ok(Rendered::Text(format!(
        "{start}\n[cut here: the value has {} bytes]",
        text.len()
    )))
}

/// Returns the JSON of a value that is no object; none if it has none, or too much.
fn primitive(value: &JsValue) -> Option<Value> {
    if value.is_null() {
        return Some(Value::Null);
    }
    if let Some(truth) = value.as_boolean() {
        return Some(truth.into());
    }
    if let Some(number) = value.as_number() {
        let is_whole = number.fract() == 0.0 && number.abs() <= WHOLE_MAX;
        return if is_whole {
            Some((number as i64).into())
        } else {
            serde_json::Number::from_f64(number).map(Value::Number)
        };
    }
    let text = value.as_string()?.to_std_string().ok()?;
    (text.len() <= VALUE_BYTES_MAX).then_some(Value::String(text))
}

/// Returns the JSON of an object; none if JSON would lose something of it, or it has too much.
fn object(value: &JsValue, world: &World, context: &mut Context) -> JsResult<Option<Value>> {
    let json = writer("json", world, context)?;
    let json = json.call(&JsValue::undefined(), std::slice::from_ref(value), context)?;
    let text = json.as_string().and_then(|text| text.to_std_string().ok());
    let text = text.filter(|text| text.len() <= VALUE_BYTES_MAX);
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Returns a value as the console prints it: a string as it is, and everything else in a form that
/// a person reads.
pub(super) fn text_of(value: &JsValue, world: &World, context: &mut Context) -> JsResult<String> {
    if let Some(text) = value.as_string() {
        return Ok(text.to_std_string_lossy());
    }
    if !value.is_object() {
        return Ok(value.display().to_string());
    }
    let inspect = writer("inspect", world, context)?;
    let text = inspect.call(&JsValue::undefined(), std::slice::from_ref(value), context)?;
    let text = text.as_string().as_ref().map(JsString::to_std_string_lossy);
    Ok(text.unwrap_or_default())
}

/// Returns one of the functions that write values down.
pub(super) fn writer(name: &str, world: &World, context: &mut Context) -> JsResult<JsObject> {
    let known = world.writers.borrow().clone();
    let writers = match known {
        Some(writers) => writers,
        None => {
            let made = context.eval(own_source(include_str!("inspect.js")))?;
            let made = made.as_object().ok_or_else(missing)?;
            *world.writers.borrow_mut() = Some(made.clone());
            made
        }
    };
    let function = writers.get(js_string!(name), context)?;
    function.as_callable().ok_or_else(|| missing().into())
}

fn missing() -> JsNativeError {
    JsNativeError::error().with_message("there is nothing that writes this value down")
}
