//! JavaScript: one program in a context of its own.
//!
//! The program is run in slices, and the clock is read between them, so that one that does not end
//! is stopped here and its output returned; so are timers. A reaction to a promise with all that
//! follows an `await` has no slices, since the engine itself runs it: there each loop looks at the
//! clock. What else the engine runs, such as a sort, a regular expression or `eval`, ends at the
//! host's limit on computing.

mod clock;
mod console;
mod endings;
mod errors;
mod jobs;
mod places;
mod reader;
mod rendering;
mod ticks;
mod world;

use crate::output::{Ending, RunResult, Thrown};
use crate::request::Allowance;
use boa_engine::builtins::promise::PromiseState;
use boa_engine::module::IdleModuleLoader;
use boa_engine::{Context, JsError, JsNativeError, JsResult, JsValue, Script, Source};
use places::{Insert, Place};
use rendering::Rendered;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::{self, Poll, Waker};
use world::{Rejections, World};

/// The program's name in its errors.
pub(crate) const PROGRAM: &str = "program.js";
/// Instructions of a slice, by their cost: few, since any of them may be a long one.
const SLICE_COST: u32 = 50;
/// Calls within calls. Most of them take no stack of the sandbox's.
const CALLS_MAX: usize = 2_000;
/// Values on the engine's own stack.
const STACK_VALUES_MAX: usize = 200_000;
/// Put before a program whose top level awaits or returns.
const WRAP_OPEN: &str = "(async () => {";
/// Functions of the world that most programs do not use, by the names that tell that one does.
const EXTRAS: [&str; 7] = [
    "atob",
    "btoa",
    "TextEncoder",
    "TextDecoder",
    "URL",
    "structuredClone",
    "globalThis",
];

/// The reason that a program did not run to its end.
enum Stop {
    /// Its time is up. The context is in the middle of something and runs nothing more.
    TimeUp,
    /// It threw.
    Threw(JsError),
}

impl From<JsError> for Stop {
    fn from(error: JsError) -> Self {
        if ticks::is_time_up(&error) {
            Self::TimeUp
        } else {
            Self::Threw(error)
        }
    }
}

/// The outcome of a program.
enum Ended {
    Value(Rendered),
    Threw(Thrown),
    TimedOut,
}

/// Runs a program for at most so long.
pub(crate) fn run(code: &str, allowance: Allowance) -> RunResult {
    let world = Rc::new(World::new(code, allowance));
    let ended = evaluate_in_world(code, &world);
    let mut result = RunResult {
        status: Ending::Completed,
        language: "javascript".to_owned(),
        value: None,
        rendered: None,
        stdout: world.stdout.borrow().text(),
        stderr: world.stderr.borrow().text(),
        error: None,
        duration_ms: world.clock.run_ms(),
    };
    match ended {
        Ended::Value(Rendered::Nothing) => {}
        Ended::Value(Rendered::Json(value)) => result.value = Some(value),
        Ended::Value(Rendered::Text(text)) => result.rendered = Some(text),
        Ended::Threw(error) if errors::is_for_want_of_memory(&error) => {
            result.status = Ending::OutOfMemory;
            result.error = Some(Thrown {
                message: "the program used more memory than it may".to_owned(),
                ..error
            });
        }
        Ended::Threw(error) => {
            result.status = Ending::Failed;
            result.error = Some(error);
        }
        Ended::TimedOut => {
            result.status = Ending::TimedOut;
            result.error = Some(errors::timed_out(&world.clock));
        }
    }
    result
}

fn evaluate_in_world(code: &str, world: &Rc<World>) -> Ended {
    let mut context = match context_of(code, world) {
        Ok(context) => context,
        Err(error) => return Ended::Threw(errors::unnamed(&error.to_string())),
    };
    let evaluated = evaluate(code, world, &mut context);
    let rendered = evaluated.and_then(|value| Ok(rendering::render(&value, world, &mut context)?));
    let ended = match rendered {
        Ok(rendered) => Ended::Value(rendered),
        Err(Stop::Threw(error)) => Ended::Threw(errors::thrown(&error, world, &mut context)),
        Err(Stop::TimeUp) => Ended::TimedOut,
    };
    // The instance ends with the call; collecting its garbage would only take time.
    std::mem::forget(context);
    ended
}

/// A context with everything that a program may use.
fn context_of(code: &str, world: &Rc<World>) -> JsResult<Context> {
    let mut context = Context::builder()
        .clock(Rc::clone(&world.clock))
        .job_executor(Rc::clone(&world.jobs))
        .host_hooks(Rc::new(Rejections::new(world)))
        .module_loader(Rc::new(IdleModuleLoader))
        .build()?;
    context.insert_data(Rc::clone(world));
    let limits = context.runtime_limits_mut();
    limits.set_recursion_limit(CALLS_MAX);
    limits.set_stack_size_limit(STACK_VALUES_MAX);
    console::install(&mut context)?;
    jobs::install(&mut context)?;
    if EXTRAS.iter().any(|name| code.contains(name)) {
        context.eval(own_source(include_str!("javascript/extras.js")))?;
    }
    Ok(context)
}

/// The source of a part of this component.
fn own_source(text: &'static str) -> Source<'static, impl boa_engine::parser::source::ReadChar> {
    Source::from_bytes(text)
}

/// Runs a program with everything that it left to be done later, and returns the value of its last
/// expression, awaited if it is a promise.
fn evaluate(code: &str, world: &Rc<World>, context: &mut Context) -> Result<JsValue, Stop> {
    let script = parse(code, world, context)?;
    let value = in_slices(&script, world, context)?;
    jobs::drain(world, context)?;
    let value = match value.as_promise().map(|promise| promise.state()) {
        Some(PromiseState::Fulfilled(value)) => value,
        Some(PromiseState::Rejected(reason)) => return Err(JsError::from_opaque(reason).into()),
        Some(PromiseState::Pending) => {
            let reason = world.first_unhandled();
            let error = reason.map_or_else(never_resolved, JsError::from_opaque);
            return Err(error.into());
        }
        None => value,
    };
    match world.first_unhandled() {
        Some(reason) => Err(JsError::from_opaque(reason).into()),
        None => Ok(value),
    }
}

/// The error of a program that is left waiting when there is nothing more to run.
fn never_resolved() -> JsError {
    JsNativeError::error()
        .with_message(errors::NEVER_RESOLVED)
        .into()
}

/// Reads a program. One that has an `await` or `return` at its top level becomes the body of a
/// function, which returns the value of its last expression.
fn parse(code: &str, world: &World, context: &mut Context) -> JsResult<Script> {
    let may_await = code.contains("await");
    if may_await
        && endings::reads_await(code)
        && let Ok(script) = wrapped(code, world, context)
    {
        return Ok(script);
    }
    let error = match ticking(code, world, context) {
        Ok(script) => return Ok(script),
        Err(error) => error,
    };
    if !may_await && !code.contains("return") {
        return Err(error);
    }
    wrapped(code, world, context).map_err(|_| endings::error_as_body(code).unwrap_or(error))
}

/// Reads a program as the body of a function.
fn wrapped(code: &str, world: &World, context: &mut Context) -> JsResult<Script> {
    let body = endings::returning(code);
    let wrapped = format!("{WRAP_OPEN}{}\n}})()", body.code);
    let script = ticking(&wrapped, world, context)?;
    let mut inserts = world.inserts.borrow_mut();
    inserts.push(Insert {
        before: Place::FIRST,
        width: WRAP_OPEN.len() as u32,
    });
    inserts.extend(body.inserts);
    Ok(script)
}

/// Reads some code, with loops that look at the clock if it can be read so too.
fn ticking(code: &str, world: &World, context: &mut Context) -> JsResult<Script> {
    if let Some(ticking) = ticks::insert(code)
        && let Ok(script) = script(&ticking.code, context)
    {
        ticks::install(context)?;
        *world.inserts.borrow_mut() = ticking.inserts;
        return Ok(script);
    }
    script(code, context)
}

fn script(code: &str, context: &mut Context) -> JsResult<Script> {
    let source = Source::from_bytes(code).with_path(Path::new(PROGRAM));
    Script::parse(source, None, context)
}

fn in_slices(script: &Script, world: &World, context: &mut Context) -> Result<JsValue, Stop> {
    let mut running = pin!(script.evaluate_async_with_budget(context, SLICE_COST));
    let mut task = task::Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = running.as_mut().poll(&mut task) {
            return Ok(result?);
        }
        if world.clock.is_over() {
            return Err(Stop::TimeUp);
        }
    }
}
