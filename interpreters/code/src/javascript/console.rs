//! `console`: what a program prints, line by line into its two streams.

use super::jobs::attribute;
use super::rendering::{text_of, writer};
use super::world::World;
use crate::output::Stream;
use boa_engine::object::ObjectInitializer;
use boa_engine::{Context, JsArgs as _, JsResult, JsValue, NativeFunction, js_string};
use std::cell::RefCell;

/// Groups within groups that are indented.
const GROUPS_MAX: usize = 20;

/// One of the two streams.
#[derive(Clone, Copy)]
enum To {
    Stdout,
    Stderr,
}

impl To {
    fn stream(self, world: &World) -> &RefCell<Stream> {
        match self {
            Self::Stdout => &world.stdout,
            Self::Stderr => &world.stderr,
        }
    }
}

/// Defines `console`.
pub(super) fn install(context: &mut Context) -> JsResult<()> {
    let mut console = ObjectInitializer::new(context);
    for name in ["log", "info", "debug", "dir"] {
        console.function(NativeFunction::from_fn_ptr(log), js_string!(name), 0);
    }
    for name in ["warn", "error", "trace"] {
        console.function(NativeFunction::from_fn_ptr(error), js_string!(name), 0);
    }
    let console = console
        .function(NativeFunction::from_fn_ptr(assert), js_string!("assert"), 0)
        .function(NativeFunction::from_fn_ptr(table), js_string!("table"), 1)
        .function(NativeFunction::from_fn_ptr(group), js_string!("group"), 0)
        .function(
            NativeFunction::from_fn_ptr(group_end),
            js_string!("groupEnd"),
            0,
        )
        .build();
    context.register_global_property(js_string!("console"), console, attribute())
}

fn log(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    print(To::Stdout, args, context)
}

fn error(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    print(To::Stderr, args, context)
}

fn assert(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    if args.get_or_undefined(0).to_boolean() {
        return Ok(JsValue::undefined());
    }
    let said = JsValue::from(js_string!("Assertion failed"));
    let rest = args.get(1..).unwrap_or_default();
    let line: Vec<JsValue> = std::iter::once(said).chain(rest.iter().cloned()).collect();
    print(To::Stderr, &line, context)
}

fn table(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let data = args.get_or_undefined(0).clone();
    let Some(world) = World::from_context(context) else {
        return Ok(JsValue::undefined());
    };
    if !data.is_object() {
        return print(To::Stdout, &[data], context);
    }
    let made = writer("table", &world, context)?.call(&JsValue::undefined(), &[data], context)?;
    print(To::Stdout, &[made], context)
}

fn group(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    if !args.is_empty() {
        print(To::Stdout, args, context)?;
    }
    if let Some(world) = World::from_context(context) {
        world.groups.set(world.groups.get().saturating_add(1));
    }
    Ok(JsValue::undefined())
}

fn group_end(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    if let Some(world) = World::from_context(context) {
        world.groups.set(world.groups.get().saturating_sub(1));
    }
    Ok(JsValue::undefined())
}

fn print(to: To, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let Some(world) = World::from_context(context) else {
        return Ok(JsValue::undefined());
    };
    // A line for which there is no room is not made at all.
    if to.stream(&world).borrow_mut().drops_line() {
        return Ok(JsValue::undefined());
    }
    let line = line_of(args, &world, context)?;
    let groups = world.groups.get().min(GROUPS_MAX);
    let line = if groups == 0 {
        line
    } else {
        let indent = "  ".repeat(groups);
        format!("{indent}{}", line.replace('\n', &format!("\n{indent}")))
    };
    to.stream(&world).borrow_mut().line(&line);
    Ok(JsValue::undefined())
}

/// Returns a line of some values, after the format in the first one.
fn line_of(args: &[JsValue], world: &World, context: &mut Context) -> JsResult<String> {
    let mut rest = args.iter();
    let mut line = String::new();
    let format = args.first().and_then(JsValue::as_string);
    if let Some(format) = format.filter(|_| args.len() > 1) {
        rest.next();
        let format = format.to_std_string_lossy();
        let mut chunks = format.split('%');
        line.push_str(chunks.next().unwrap_or_default());
        while let Some(chunk) = chunks.next() {
            let mut letters = chunk.chars();
            let kind = letters.next();
            match kind {
                // `%%` is a sign of its own, and the chunk after it is plain text.
                None => {
                    line.push('%');
                    line.push_str(chunks.next().unwrap_or_default());
                    continue;
                }
                Some('c') => {
                    rest.next();
                }
                Some('s' | 'd' | 'i' | 'f' | 'j' | 'o' | 'O') if rest.len() > 0 => {
                    if let Some(value) = rest.next() {
                        line.push_str(&text_of(value, world, context)?);
                    }
                }
                Some(other) => {
                    line.push('%');
                    line.push(other);
                }
            }
            line.push_str(letters.as_str());
        }
        if rest.len() > 0 {
            line.push(' ');
        }
    }
    let mut texts = Vec::new();
    for value in rest {
        texts.push(text_of(value, world, context)?);
    }
    line.push_str(&texts.join(" "));
    Ok(line)
}
