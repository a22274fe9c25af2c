//! Work that a program leaves to be done later: reactions to promises, and timers.

use super::Stop;
use super::world::World;
use boa_engine::job::{GenericJob, Job, JobExecutor, NativeAsyncJob, PromiseJob};
use boa_engine::{Context, JsResult, JsValue};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Poll, Waker};

/// Times that a job which waits for something is asked. Nothing here makes one wait.
const POLLS_MAX: usize = 100;

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

/// Runs everything that is left, timers included, until there is nothing more.
pub(super) fn drain(world: &World, context: &mut Context) -> Result<(), Stop> {
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
        timer
            .callback
            .call(&JsValue::undefined(), &timer.arguments, context)?;
    }
}
