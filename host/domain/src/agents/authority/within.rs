//! The bounds of a call beyond its grant: the ceiling of its run, and the declaration of its tool.

use crate::access::grant::{Access, Bound, BucketGrant, DirectoryGrant, GuestLimits};
use crate::access::ruling::Rule;
use crate::access::tool::EffectClass;

impl Bound {
    /// Returns the intersection. A grant is compared as a whole: if it changed since the run began,
    /// as in a folder's patterns or a request's path, it is in neither. Only for access to folders
    /// and buckets, and for limits, the lesser counts.
    #[must_use]
    pub fn within(mut self, ceiling: &Self) -> Self {
        for ruling in &mut self.rulings {
            let was = ceiling
                .rulings
                .iter()
                .find(|was| was.capability == ruling.capability);
            if ruling.allowed && !was.is_some_and(|was| was.allowed) {
                (ruling.allowed, ruling.rule) = (false, Rule::Ceiling);
            }
        }
        both(self, ceiling)
    }

    /// Returns the same for a tool of this class. A tool that declares itself read-only gets its
    /// buckets read-only. Its calls may be repeated at any time, and may run in parallel.
    #[must_use]
    pub fn for_effect(mut self, effect: EffectClass) -> Self {
        if effect != EffectClass::ReadOnly {
            return self;
        }
        for bucket in self
            .key_value
            .iter_mut()
            .filter(|bucket| bucket.access == Access::ReadWrite)
        {
            bucket.access = Access::ReadOnly;
            let writing = bucket.writing();
            for ruling in self
                .rulings
                .iter_mut()
                .filter(|ruling| ruling.allowed && ruling.capability == writing)
            {
                (ruling.allowed, ruling.rule) = (false, Rule::ReadOnly);
            }
        }
        self
    }
}

fn both(now: Bound, then: &Bound) -> Bound {
    let Bound {
        directories,
        mut network,
        mut environment,
        key_value,
        mut secrets,
        limits,
        rulings,
    } = now;
    let directories = directories.into_iter().filter_map(|now| {
        let access = then
            .directories
            .iter()
            .find(|then| {
                DirectoryGrant {
                    access: now.access,
                    ..(*then).clone()
                } == now
            })?
            .access;
        Some(DirectoryGrant {
            access: now.access.min(access),
            ..now
        })
    });
    let key_value = key_value.into_iter().filter_map(|now| {
        let access = then
            .key_value
            .iter()
            .find(|then| {
                BucketGrant {
                    access: now.access,
                    ..(*then).clone()
                } == now
            })?
            .access;
        Some(BucketGrant {
            access: now.access.min(access),
            ..now
        })
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
