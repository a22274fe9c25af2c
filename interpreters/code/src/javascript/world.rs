//! The surroundings of a program, beside its own values.

use super::clock::ProgramClock;
use super::jobs::{Jobs, Timers};
use super::places::{Insert, Place, original};
use crate::output::Stream;
use crate::request::Allowance;
use boa_engine::builtins::promise::{OperationType, Promise, PromiseState};
use boa_engine::context::HostHooks;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsObject, JsValue};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// Rejected promises that are kept to see whether somebody handles them.
const REJECTED_MAX: usize = 1_000;

/// Everything that the functions of a program share.
pub(super) struct World {
    pub(super) clock: Rc<ProgramClock>,
    pub(super) jobs: Rc<Jobs>,
    pub(super) timers: RefCell<Timers>,
    pub(super) stdout: RefCell<Stream>,
    pub(super) stderr: RefCell<Stream>,
    /// Groups of the console that are open.
    pub(super) groups: Cell<usize>,
    /// The functions that write values down, once they are needed.
    pub(super) writers: RefCell<Option<JsObject>>,
    /// The program as it was.
    pub(super) code: String,
    /// Text that was inserted in the program.
    pub(super) inserts: RefCell<Vec<Insert>>,
    rejected: RefCell<Vec<JsObject>>,
}

impl World {
    pub(super) fn new(code: &str, allowance: Allowance) -> Self {
        Self {
            clock: Rc::new(ProgramClock::new(allowance)),
            jobs: Rc::default(),
            timers: RefCell::default(),
            stdout: RefCell::default(),
            stderr: RefCell::default(),
            groups: Cell::default(),
            writers: RefCell::default(),
            code: code.to_owned(),
            inserts: RefCell::default(),
            rejected: RefCell::default(),
        }
    }

    /// The world of a context; none if it was made without one.
    pub(super) fn from_context(context: &Context) -> Option<Rc<Self>> {
        context.get_data::<Rc<Self>>().cloned()
    }

    /// Returns the place in the program as it was, for one in the program as it runs.
    pub(super) fn original(&self, place: Place) -> Place {
        original(&self.inserts.borrow(), place)
    }

    /// The reason of the first promise that was rejected and that nobody handled.
    pub(super) fn first_unhandled(&self) -> Option<JsValue> {
        let rejected = self.rejected.borrow();
        rejected.iter().find_map(|promise| {
            match JsPromise::from_object(promise.clone()).ok()?.state() {
                PromiseState::Rejected(reason) => Some(reason),
                PromiseState::Pending | PromiseState::Fulfilled(_) => None,
            }
        })
    }
}

/// Takes note of promises that are rejected.
pub(super) struct Rejections {
    world: Weak<World>,
}

impl Rejections {
    pub(super) fn new(world: &Rc<World>) -> Self {
        Self {
            world: Rc::downgrade(world),
        }
    }
}

impl HostHooks for Rejections {
    fn promise_rejection_tracker(
        &self,
        promise: &JsObject<Promise>,
        operation: OperationType,
        _: &mut Context,
    ) {
        let Some(world) = self.world.upgrade() else {
            return;
        };
        let promise = promise.clone().upcast();
        let mut rejected = world.rejected.borrow_mut();
        match operation {
            OperationType::Reject if rejected.len() < REJECTED_MAX => rejected.push(promise),
            OperationType::Reject => {}
            OperationType::Handle => rejected.retain(|one| !JsObject::equals(one, &promise)),
        }
    }
}
