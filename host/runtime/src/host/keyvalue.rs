//! `wasi:keyvalue`: no bucket is granted yet, so every one is denied.

use crate::bindings::keyvalue::wasi::keyvalue::store::{Error, KeyResponse};
use crate::bindings::keyvalue::wasi::keyvalue::{atomics, batch, store};
use crate::call::CallState;
use wasmtime::component::Resource;

/// A bucket. None is ever opened.
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub struct Bucket;

type Entry = (String, Vec<u8>);

impl store::Host for CallState {
    fn open(&mut self, identifier: String) -> wasmtime::Result<Result<Resource<Bucket>, Error>> {
        self.book.refused(&format!("{identifier}.read"), || format!("wasi:keyvalue/store.open `{identifier}`"));
        Ok(Err(Error::AccessDenied))
    }
}

impl store::HostBucket for CallState {
    fn get(&mut self, _bucket: Resource<Bucket>, _key: String) -> wasmtime::Result<Result<Option<Vec<u8>>, Error>> {
        Ok(Err(Error::AccessDenied))
    }

    fn set(&mut self, _bucket: Resource<Bucket>, _key: String, _value: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        Ok(Err(Error::AccessDenied))
    }

    fn delete(&mut self, _bucket: Resource<Bucket>, _key: String) -> wasmtime::Result<Result<(), Error>> {
        Ok(Err(Error::AccessDenied))
    }

    fn exists(&mut self, _bucket: Resource<Bucket>, _key: String) -> wasmtime::Result<Result<bool, Error>> {
        Ok(Err(Error::AccessDenied))
    }

    fn list_keys(&mut self, _bucket: Resource<Bucket>, _cursor: Option<u64>) -> wasmtime::Result<Result<KeyResponse, Error>> {
        Ok(Err(Error::AccessDenied))
    }

    fn drop(&mut self, _bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl atomics::Host for CallState {
    fn increment(&mut self, _bucket: Resource<Bucket>, _key: String, _delta: u64) -> wasmtime::Result<Result<u64, Error>> {
        Ok(Err(Error::AccessDenied))
    }
}

impl batch::Host for CallState {
    fn get_many(&mut self, _bucket: Resource<Bucket>, _keys: Vec<String>) -> wasmtime::Result<Result<Vec<Option<Entry>>, Error>> {
        Ok(Err(Error::AccessDenied))
    }

    fn set_many(&mut self, _bucket: Resource<Bucket>, _entries: Vec<Entry>) -> wasmtime::Result<Result<(), Error>> {
        Ok(Err(Error::AccessDenied))
    }

    fn delete_many(&mut self, _bucket: Resource<Bucket>, _keys: Vec<String>) -> wasmtime::Result<Result<(), Error>> {
        Ok(Err(Error::AccessDenied))
    }
}
