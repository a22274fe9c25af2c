//! Keys and values of the bucket `notes`.

use crate::bindings::wasi::keyvalue::store::{Bucket, open};
use crate::bindings::wasi::keyvalue::{atomics, batch};
use crate::{Rows, said, with_handle};

/// A function of a bucket, which returns its result.
type Call<'a> = &'a dyn Fn(&Bucket) -> String;

pub(crate) fn probe(rows: &mut Rows) {
    let opened = open("notes");
    rows.say("wasi:keyvalue/store.open", said(&opened));
    let bucket = opened.ok();
    let names = || vec!["key".to_owned()];
    let calls: [(&str, Call<'_>); 9] = [
        ("store.[method]bucket.get", &|bucket| {
            said(&bucket.get("key"))
        }),
        ("store.[method]bucket.exists", &|bucket| {
            said(&bucket.exists("key"))
        }),
        ("store.[method]bucket.list-keys", &|bucket| {
            said(&bucket.list_keys(None))
        }),
        ("store.[method]bucket.set", &|bucket| {
            said(&bucket.set("key", b"1"))
        }),
        ("store.[method]bucket.delete", &|bucket| {
            said(&bucket.delete("key"))
        }),
        ("atomics.increment", &|bucket| {
            said(&atomics::increment(bucket, "count", 1))
        }),
        ("batch.get-many", &|bucket| {
            said(&batch::get_many(bucket, &names()))
        }),
        ("batch.set-many", &|bucket| {
            said(&batch::set_many(
                bucket,
                &[("key".to_owned(), b"1".to_vec())],
            ))
        }),
        ("batch.delete-many", &|bucket| {
            said(&batch::delete_many(bucket, &names()))
        }),
    ];
    for (name, call) in calls {
        rows.say(
            &format!("wasi:keyvalue/{name}"),
            with_handle(bucket.as_ref(), call),
        );
    }
}
