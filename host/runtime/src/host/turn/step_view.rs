//! The view of one step as its call holds it, with the running hash over what was read.

use crate::view::{View, ViewStatic};
use domain::basis::{Basis, LimitsLeft};
use domain::digest::Digest;
use domain::time::Timestamp;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The guest's handle of its view. There is one view in a step, so the handle says nothing.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub struct ViewHandle;

/// The view of one step, and the hash over what was read of it.
pub(crate) struct StepView {
    pub(super) view: Arc<dyn View>,
    pub(super) now: Timestamp,
    pub(super) left: LimitsLeft,
    answers: Sha256,
}

impl StepView {
    pub(crate) fn new(view: Arc<dyn View>, basis: &Basis) -> Self {
        Self {
            view,
            now: basis.now,
            left: basis.left,
            answers: Sha256::new(),
        }
    }

    /// The hash over everything that was read so far.
    pub(crate) fn answers(&self) -> Digest {
        Digest(self.answers.clone().finalize().into())
    }

    /// Returns the answers that were there before the step began.
    pub(super) fn basis_static(&self) -> &ViewStatic {
        self.view.basis_static()
    }

    /// Takes a question and its answer into the hash. Each chunk's length goes in first, so no two
    /// sequences look the same.
    pub(super) fn record_answer(&mut self, question: &str, answer: &[&[u8]]) {
        for chunk in std::iter::once(&question.as_bytes()).chain(answer) {
            self.answers.update((chunk.len() as u64).to_be_bytes());
            self.answers.update(chunk);
        }
    }
}
