//! Keeping a call within what its run began with, and within what its tool says of itself.

use super::Rule;
use crate::grant::{Access, Bound, BucketGrant, DirectoryGrant, GuestLimits};
use crate::tool::EffectClass;

impl Bound {
    /// What both allow. What was changed since the run began, a folder's patterns or a request's path for instance, is for neither: a
    /// grant is compared as a whole, but for the access to folders and buckets, of which the lesser counts, and for limits, likewise.
    #[must_use]
    pub fn within(mut self, ceiling: &Self) -> Self {
        for ruling in &mut self.rulings {
            let was = ceiling.rulings.iter().find(|was| was.capability == ruling.capability);
            if ruling.allowed && !was.is_some_and(|was| was.allowed) {
                (ruling.allowed, ruling.rule) = (false, Rule::Ceiling);
            }
        }
        both(self, ceiling)
    }

    /// The same for a tool of this class. One that says that it only reads gets its buckets read-only: such a call may run again at any
    /// time, and at the same time.
    #[must_use]
    pub fn for_effect(mut self, effect: EffectClass) -> Self {
        if effect != EffectClass::ReadOnly {
            return self;
        }
        for bucket in self.key_value.iter_mut().filter(|bucket| bucket.access == Access::ReadWrite) {
            bucket.access = Access::ReadOnly;
            let writing = bucket.writing();
            for ruling in self.rulings.iter_mut().filter(|ruling| ruling.allowed && ruling.capability == writing) {
                (ruling.allowed, ruling.rule) = (false, Rule::ReadOnly);
            }
        }
        self
    }
}

fn both(now: Bound, then: &Bound) -> Bound {
    let Bound { directories, mut network, mut environment, key_value, mut secrets, limits, rulings } = now;
    let directories = directories.into_iter().filter_map(|now| {
        let access = then.directories.iter().find(|then| DirectoryGrant { access: now.access, ..(*then).clone() } == now)?.access;
        Some(DirectoryGrant { access: now.access.min(access), ..now })
    });
    let key_value = key_value.into_iter().filter_map(|now| {
        let access = then.key_value.iter().find(|then| BucketGrant { access: now.access, ..(*then).clone() } == now)?.access;
        Some(BucketGrant { access: now.access.min(access), ..now })
    });
    network.retain(|now| then.network.contains(now));
    environment.retain(|name, value| then.environment.get(name) == Some(value));
    secrets.retain(|now| then.secrets.contains(now));
    Bound {
        directories: directories.collect(),
        key_value: key_value.collect(),
        network,
        environment,
        secrets,
        limits: lesser(limits, then.limits),
        rulings,
    }
}

fn lesser(now: GuestLimits, then: GuestLimits) -> GuestLimits {
    GuestLimits {
        memory_bytes_max: now.memory_bytes_max.min(then.memory_bytes_max),
        cpu_ms_max: now.cpu_ms_max.min(then.cpu_ms_max),
        wall_ms_max: now.wall_ms_max.min(then.wall_ms_max),
        concurrency_max: now.concurrency_max.min(then.concurrency_max),
        calls_per_minute_max: now.calls_per_minute_max.min(then.calls_per_minute_max),
        egress_bytes_max: now.egress_bytes_max.min(then.egress_bytes_max),
        log_bytes_max: now.log_bytes_max.min(then.log_bytes_max),
    }
}
