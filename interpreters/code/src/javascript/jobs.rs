//! Work that a program leaves to be done later: reactions to promises, and timers.

use super::timers::Timer;
use super::world::World;
use super::{Stop, in_slices, own_source};
use boa_engine::job::{GenericJob, Job, JobExecutor, NativeAsyncJob, PromiseJob};
use boa_engine::object::ObjectInitializer;
use boa_engine::object::builtins::JsArray;
use boa_engine::property::Attribute;
use boa_engine::{Context, JsObject, JsResult, JsValue, Script, js_string};
use std::cell::RefCell;
use std::collections::VecDeque;
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
