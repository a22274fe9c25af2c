//! Loading: from a component's bytes to code that is compiled, linked, and asked what it is.

use super::{Inner, Loaded, Runtime};
use crate::artifacts;
use crate::cache::{CacheLookup, Entry};
use crate::call::CallScope;
use crate::component::{Component, Described};
use crate::convert::Unacceptable;
use crate::convert::describe::{
    agent_description, connector_description, tool_definitions, trigger_description,
};
use crate::exports::World;
use crate::load::{self, Linked, LoadError};
use crate::manifest;
use crate::outcome::Outcome;
use crate::run;
use crate::runtime::count;
use domain::digest::Digest;
use domain::operation::CallUsage;
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;
use wasmtime::component::Component as Code;

/// Milliseconds that a component waits for others to be compiled before it is refused as busy.
const COMPILE_WAIT_MS_MAX: u64 = 600_000;

impl Runtime {
    /// Loads a component, or returns it when it is loaded already. Its code comes from the cache
    /// when it was compiled before.
    ///
    /// # Errors
    /// See [`LoadError`]. A component that was refused is looked at anew the next time.
    pub async fn load(&self, wasm: Vec<u8>) -> Result<Arc<Component>, LoadError> {
        let size = wasm.len();
        let max = self.0.config.component_bytes_max;
        if size > max {
            return Err(LoadError::TooLarge { size, max });
        }
        let (digest, wasm) = blocking(move || (Digest::of(&wasm), wasm)).await?;
        let cell = self.loaded().entry(digest).or_default().clone();
        let artifact =
            (!artifacts::is_kept(&self.0.config.cache_dir, digest)).then(|| wasm.clone());
        let loaded = cell
            .get_or_try_init(|| Box::pin(self.load_new(digest, wasm)))
            .await
            .cloned();
        if let (Ok(_), Some(artifact)) = (&loaded, artifact) {
            self.keep_artifact(digest, artifact).await?;
        }
        if loaded.is_err() {
            self.loaded()
                .retain(|known, cell| *known != digest || cell.initialized());
        }
        loaded
    }

    /// Returns a component that was loaded once, now or by an earlier process; none when it is
    /// gone. For turns that began with a version that the operator has replaced since.
    pub async fn kept(&self, digest: Digest) -> Option<Arc<Component>> {
        let loaded = self
            .loaded()
            .get(&digest)
            .and_then(|cell| cell.get().cloned());
        if loaded.is_some() {
            return loaded;
        }
        let wasm = self
            .blocking(move |inner| artifacts::read(&inner.config.cache_dir, digest))
            .await
            .ok()??;
        let loaded = self.load(wasm).await;
        if let Err(error) = &loaded {
            tracing::warn!(component.digest = %digest, %error, "a kept component does not load");
        }
        loaded.ok()
    }

    /// Forgets the components that nobody holds any more. One of them is loaded from the cache when
    /// it is asked for again.
    pub fn forget_unused(&self) {
        self.loaded().retain(|_, cell| {
            // Someone is loading it, has it, or has it under a name of the operator's.
            Arc::strong_count(cell) > 1
                || cell.get().is_none_or(|component| {
                    Arc::strong_count(component) > 1 || Arc::strong_count(&component.world) > 1
                })
        });
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<Digest, Loaded>> {
        self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep_artifact(&self, digest: Digest, wasm: Vec<u8>) -> Result<(), LoadError> {
        let kept = self
            .blocking(move |inner| artifacts::keep(&inner.config.cache_dir, digest, &wasm))
            .await?;
        if let Err(error) = kept {
            tracing::warn!(component.digest = %digest, %error, "a component could not be kept: \
                turns that began with it need its file");
        }
        Ok(())
    }

    async fn load_new(&self, digest: Digest, wasm: Vec<u8>) -> Result<Arc<Component>, LoadError> {
        let size_bytes = wasm.len() as u64;
        let (manifest, wasm) = blocking(move || (manifest::read(&wasm), wasm)).await?;
        let found = self
            .blocking(move |inner| inner.cache.read(&inner.engine, digest))
            .await?;
        let (code, described) = match found {
            CacheLookup::Sound(entry) => {
                let Entry { code, described } = *entry;
                count(&self.0.counts.loaded_from_cache);
                (code, Some(described))
            }
            CacheLookup::Nothing => (self.compile(wasm).await?, None),
            CacheLookup::Damaged => {
                count(&self.0.counts.cache_damaged);
                (self.compile(wasm).await?, None)
            }
        };
        let Linked {
            world,
            wit_version,
            imports,
        } = load::link(&self.0.engine, &self.0.linker, &code)?;
        let described = match described {
            Some(described) => described,
            None => {
                let (described, _) = self.describe(&world, b"describe").await?;
                self.keep(digest, code, described.clone()).await?;
                described
            }
        };
        // Also of what an earlier version of this host has kept.
        described
            .check_wording()
            .map_err(|wrong| LoadError::DescribeRefused {
                detail: wrong.to_string(),
            })?;
        described
            .check_capabilities(&imports)
            .map_err(|detail| LoadError::DescribeRefused { detail })?;
        if let Some(Err(error)) = manifest.as_deref().map(Result::as_ref) {
            tracing::warn!(component.digest = %digest, %error, "the manifest of a component is not \
                read");
        }
        tracing::info!(component.digest = %digest, component.bytes = size_bytes, "component \
            loaded");
        Ok(Arc::new(Component {
            digest,
            name: digest.to_string(),
            described: Arc::new(described),
            imports: imports.into(),
            size_bytes,
            wit_version,
            manifest,
            world: Arc::new(world),
            gate: Arc::default(),
        }))
    }

    async fn compile(&self, wasm: Vec<u8>) -> Result<Code, LoadError> {
        let wasm = blocking(move || load::inspect(&wasm).map(|()| wasm)).await??;
        let turn = self.0.compiling.clone().acquire_owned();
        let turn = tokio::time::timeout(Duration::from_millis(COMPILE_WAIT_MS_MAX), turn).await;
        // The semaphore is never closed.
        let permit = turn.ok().and_then(Result::ok).ok_or(LoadError::Busy)?;
        let compiler = &self.0.compiler;
        let code = compiler.compile(&self.0.engine, wasm, permit).await?;
        count(&self.0.counts.compiled);
        Ok(code)
    }

    /// Keeps compiled code for the next start. A full disk costs time at that start and nothing
    /// else.
    async fn keep(
        &self,
        digest: Digest,
        code: Code,
        described: Described,
    ) -> Result<(), LoadError> {
        let kept = self
            .blocking(move |inner| inner.cache.write(digest, &code, &described))
            .await?;
        if let Err(error) = kept {
            tracing::warn!(component.digest = %digest, %error, "compiled code could not be kept \
                and will be compiled again at the next start");
        }
        Ok(())
    }

    /// Asks a loaded component again what it is, on a fresh instance and with other randomness, and
    /// returns its answer with what that used.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub async fn describe_again(
        &self,
        component: &Component,
    ) -> Result<(Described, CallUsage), LoadError> {
        self.describe(&component.world, b"describe again").await
    }

    async fn describe(
        &self,
        world: &World,
        seed: &[u8],
    ) -> Result<(Described, CallUsage), LoadError> {
        count(&self.0.counts.described);
        let limits = self.0.config.describe;
        let _permit = self.0.guests.enter_ungated().await.ok_or(LoadError::Busy)?;
        let mut store = self.store(CallScope::none(seed), &limits);
        let time = store.data().time();
        let guest = async {
            Ok(match world {
                World::StandIn(_) => return Err(wasmtime::format_err!("a stand-in has no code")),
                World::Agent(agent) => {
                    agent_description(agent.describe(&mut store).await?).map(Described::Agent)
                }
                World::Tools(tools) => {
                    tool_definitions(tools.describe(&mut store).await?).map(Described::Tools)
                }
                World::Trigger(trigger) => {
                    let description = trigger.describe(&mut store).await?;
                    trigger_description(description).map(Described::Trigger)
                }
                World::Connector(connector) => {
                    let description = connector.describe(&mut store).await?;
                    connector_description(description).map(Described::Connector)
                }
            })
        };
        let ended = run::drive(&time, Duration::from_millis(limits.wall_ms_max), guest).await;
        let (logs, dropped) = store.data().log.take();
        let usage = store.data().usage(self.0.config.tick_ms, dropped);
        let described = description(run::outcome(ended, store.data(), &time, &logs))?;
        Ok((described, usage))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, LoadError> {
        let inner = self.0.clone();
        blocking(move || work(&inner)).await
    }
}

/// Returns what a component said of itself, or the reason that it did not.
fn description(outcome: Outcome<Result<Described, Unacceptable>>) -> Result<Described, LoadError> {
    let stopped = |limit| Err(LoadError::DescribeStopped { limit });
    match outcome {
        Outcome::Returned(Ok(described)) => Ok(described),
        Outcome::Returned(Err(Unacceptable(detail))) | Outcome::Refused { detail } => {
            Err(LoadError::DescribeRefused { detail })
        }
        Outcome::Trapped { message, .. } => Err(LoadError::DescribeTrapped { message }),
        Outcome::OutOfMemory => stopped("needs more memory than it may have"),
        Outcome::OutOfCpu => stopped("computes for too long"),
        Outcome::TimedOut => stopped("takes too long"),
        Outcome::Busy | Outcome::TooOften { .. } => Err(LoadError::Busy),
        Outcome::Faulted { detail, .. } => Err(LoadError::Faulted { detail }),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LoadError> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.map_err(|error| LoadError::Faulted {
        detail: error.to_string(),
    })
}
