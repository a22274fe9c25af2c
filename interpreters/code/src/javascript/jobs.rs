//! Work that a program leaves to be done later: reactions to promises, and timers. A timer does not
//! wait: the program's clock skips to it.

use super::world::World;
use super::{Stop, in_slices, own_source};
use boa_engine::job::{GenericJob, Job, JobExecutor, NativeAsyncJob, PromiseJob};
use boa_engine::object::builtins::JsArray;
use boa_engine::object::{FunctionObjectBuilder, ObjectInitializer};
use boa_engine::property::Attribute;
use boa_engine::{
    Context, JsArgs as _, JsNativeError, JsObject, JsResult, JsValue, NativeFunction, Script,
    js_string,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, Waker};

/// Times that a job which waits for something is asked. Nothing here makes one wait.
const POLLS_MAX: usize = 100;
/// The global with the timer that is due, for the script that calls it.
const DUE: &str = "__agent_host_timer";
/// A call of the timer that is due. A script runs in slices, and so does what it calls.
const CALL_DUE: &str = "(0, __agent_host_timer.run)(...__agent_host_timer.with)";

/// A piece of work for later.
enum Later {
    Promise(PromiseJob),
    Generic(GenericJob),
    Async(NativeAsyncJob),
}

/// The work for later, in order.
#[derive(Default)]
pub(super) struct Jobs {
    waiting: RefCell<VecDeque<Later>>,
}

impl Jobs {
    fn next(&self) -> Option<Later> {
        self.waiting.borrow_mut().pop_front()
    }
}

impl JobExecutor for Jobs {
    fn enqueue_job(self: Rc<Self>, job: Job, _: &mut Context) {
        let later = match job {
            Job::PromiseJob(job) => Later::Promise(job),
            Job::GenericJob(job) => Later::Generic(job),
            Job::AsyncJob(job) => Later::Async(job),
            // Nobody promises that a finalizer runs, and timers are not the engine's here.
            _ => return,
        };
        self.waiting.borrow_mut().push_back(later);
    }

    fn run_jobs(self: Rc<Self>, context: &mut Context) -> JsResult<()> {
        while let Some(job) = self.next() {
            run(job, context)?;
        }
        Ok(())
    }
}

fn run(job: Later, context: &mut Context) -> JsResult<JsValue> {
    match job {
        Later::Promise(job) => job.call(context),
        Later::Generic(job) => job.call(context),
        Later::Async(job) => {
            let context = RefCell::new(context);
            let mut work = job.call(&context);
            let mut task = task::Context::from_waker(Waker::noop());
            for _ in 0..POLLS_MAX {
                if let Poll::Ready(result) = Pin::new(&mut work).poll(&mut task) {
                    return result;
                }
            }
            Ok(JsValue::undefined())
        }
    }
}

/// Calls timers in slices, so that one without an end is stopped and the output kept.
struct TimerCalls {
    due: JsObject,
    script: Script,
}

impl TimerCalls {
    fn install(context: &mut Context) -> JsResult<Self> {
        let due = ObjectInitializer::new(context).build();
        let attribute = Attribute::READONLY | Attribute::NON_ENUMERABLE | Attribute::PERMANENT;
        context.register_global_property(js_string!(DUE), due.clone(), attribute)?;
        let script = Script::parse(own_source(CALL_DUE), None, context)?;
        Ok(Self { due, script })
    }

    fn call(&self, timer: Timer, world: &World, context: &mut Context) -> Result<(), Stop> {
        let arguments = JsArray::from_iter(timer.arguments, context);
        self.due
            .set(js_string!("run"), timer.callback, true, context)?;
        self.due.set(js_string!("with"), arguments, true, context)?;
        in_slices(&self.script, world, context)?;
        Ok(())
    }
}

/// Runs everything that is left, timers included, until there is nothing more. What reacts to a
/// promise is called by the engine itself and has no slices; its loops look at the clock.
pub(super) fn drain(world: &World, context: &mut Context) -> Result<(), Stop> {
    let mut calls = None;
    loop {
        while let Some(job) = world.jobs.next() {
            run(job, context)?;
            if world.clock.is_over() {
                return Err(Stop::TimeUp);
            }
        }
        let next = world.timers.borrow_mut().next();
        let Some(timer) = next else {
            return Ok(());
        };
        world.clock.skip_to(timer.due_ms);
        if world.clock.is_over() {
            return Err(Stop::TimeUp);
        }
        let ready = match calls.take() {
            Some(ready) => ready,
            None => TimerCalls::install(context)?,
        };
        ready.call(timer, world, context)?;
        calls = Some(ready);
    }
}

/// Timers that are set at the same time.
const TIMERS_MAX: usize = 10_000;
/// The longest time of a timer, in milliseconds.
const DELAY_MS_MAX: f64 = 2_147_483_647.0;

/// A timer that is set.
#[derive(Clone)]
pub(super) struct Timer {
    id: u32,
    /// The program's time at which it is due.
    pub(super) due_ms: u64,
    interval_ms: Option<u64>,
    pub(super) callback: JsObject,
    pub(super) arguments: Vec<JsValue>,
}

/// The timers of a program, by the time at which they are due and the order in which they were set.
#[derive(Default)]
pub(super) struct Timers {
    set: BTreeMap<(u64, u64), Timer>,
    order: u64,
    last_id: u32,
}

impl Timers {
    /// Takes the next one; an interval is set again.
    pub(super) fn next(&mut self) -> Option<Timer> {
        let (_, timer) = self.set.pop_first()?;
        if let Some(interval_ms) = timer.interval_ms {
            self.insert(Timer {
                due_ms: timer.due_ms.saturating_add(interval_ms),
                ..timer.clone()
            });
        }
        Some(timer)
    }

    fn insert(&mut self, timer: Timer) {
        self.order += 1;
        self.set.insert((timer.due_ms, self.order), timer);
    }

    fn clear(&mut self, id: u32) {
        self.set.retain(|_, timer| timer.id != id);
    }
}

/// Defines the functions.
pub(super) fn install(context: &mut Context) -> JsResult<()> {
    let functions = [
        ("setTimeout", NativeFunction::from_fn_ptr(set_timeout)),
        ("setInterval", NativeFunction::from_fn_ptr(set_interval)),
        ("setImmediate", NativeFunction::from_fn_ptr(set_immediate)),
        ("clearTimeout", NativeFunction::from_fn_ptr(clear)),
        ("clearInterval", NativeFunction::from_fn_ptr(clear)),
        ("clearImmediate", NativeFunction::from_fn_ptr(clear)),
        (
            "queueMicrotask",
            NativeFunction::from_fn_ptr(queue_microtask),
        ),
    ];
    for (name, function) in functions {
        let function = FunctionObjectBuilder::new(context.realm(), function)
            .name(js_string!(name))
            .build();
        context.register_global_property(js_string!(name), function, attribute())?;
    }
    let performance = ObjectInitializer::new(context)
        .function(NativeFunction::from_fn_ptr(now), js_string!("now"), 0)
        .build();
    context.register_global_property(js_string!("performance"), performance, attribute())
}

/// The attributes of a global of the world's, as of those of the language.
pub(super) fn attribute() -> Attribute {
    Attribute::WRITABLE | Attribute::NON_ENUMERABLE | Attribute::CONFIGURABLE
}

fn set_timeout(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let delay_ms = delay(args, context)?;
    set(args, 2, context, |due_ms| (due_ms + delay_ms, None))
}

fn set_interval(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let delay_ms = delay(args, context)?;
    set(args, 2, context, |due_ms| {
        (due_ms + delay_ms, Some(delay_ms))
    })
}

fn set_immediate(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    set(args, 1, context, |due_ms| (due_ms, None))
}

/// Returns the delay that a call asks for. It is never nothing, so that an interval gets on.
fn delay(args: &[JsValue], context: &mut Context) -> JsResult<u64> {
    let wanted = args.get_or_undefined(1).to_number(context)?;
    // What is no number is not greater than 1 either.
    let delay_ms = if wanted > 1.0 {
        wanted.min(DELAY_MS_MAX)
    } else {
        1.0
    };
    Ok(delay_ms as u64)
}

fn set(
    args: &[JsValue],
    first_argument: usize,
    context: &mut Context,
    times: impl FnOnce(u64) -> (u64, Option<u64>),
) -> JsResult<JsValue> {
    let callback = callable(args)?;
    let Some(world) = World::from_context(context) else {
        return Ok(JsValue::undefined());
    };
    let mut timers = world.timers.borrow_mut();
    if timers.set.len() >= TIMERS_MAX {
        return Err(JsNativeError::range()
            .with_message(format!("more than {TIMERS_MAX} timers are set"))
            .into());
    }
    let (due_ms, interval_ms) = times(world.clock.now_ms());
    timers.last_id += 1;
    let id = timers.last_id;
    timers.insert(Timer {
        id,
        due_ms,
        interval_ms,
        callback,
        arguments: args.get(first_argument..).unwrap_or_default().to_vec(),
    });
    Ok(JsValue::from(id))
}

fn callable(args: &[JsValue]) -> JsResult<JsObject> {
    args.get_or_undefined(0).as_callable().ok_or_else(|| {
        JsNativeError::typ()
            .with_message("the first argument must be a function")
            .into()
    })
}

fn clear(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let id = args.get_or_undefined(0).to_u32(context)?;
    if let Some(world) = World::from_context(context) {
        world.timers.borrow_mut().clear(id);
    }
    Ok(JsValue::undefined())
}

fn queue_microtask(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let callback = callable(args)?;
    let job = PromiseJob::new(move |context| callback.call(&JsValue::undefined(), &[], context));
    context.enqueue_job(job.into());
    Ok(JsValue::undefined())
}

fn now(_: &JsValue, _: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let now_ms = World::from_context(context).map_or(0, |world| world.clock.now_ms());
    Ok(JsValue::from(now_ms as f64))
}
