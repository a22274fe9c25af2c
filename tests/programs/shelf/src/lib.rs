//! Tools that do with buckets what their arguments list, and report the result of each.
//!
//! `{"bucket": "notes", "do": [["set", "a", "1"], ["get", "a"]], "then": "trap"}`. A value that
//! begins with `0x` is written and shown as bytes in hexadecimal digits.

use bindings::wasi::keyvalue::store::{Bucket, Error, open};
use bindings::wasi::keyvalue::{atomics, batch};
use plugin::tool::agent_host::plugin::types::ClientAction;
use plugin::tool::{
    Ask, CallContext, EffectClass, Guest, Later, Progress, ToolDefinition, ToolError, done, named,
};
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

struct Program;

fn tool(name: &str, effect: EffectClass) -> ToolDefinition {
    let capabilities = ["notes.read", "notes.write", "other.read", "other.write"].map(String::from);
    ToolDefinition {
        capabilities: capabilities.to_vec(),
        effect,
        ..named(name)
    }
}

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        let number = r#"{"type":"number"}"#.to_owned();
        vec![
            tool("peek", EffectClass::ReadOnly),
            tool("keep", EffectClass::Idempotent),
            tool("once", EffectClass::NonIdempotent),
            ToolDefinition {
                results: Some(number),
                ..tool("promise", EffectClass::Idempotent)
            },
        ]
    }

    fn call(context: CallContext, _name: String, arguments: String) -> Result<Progress, ToolError> {
        let arguments: Value = serde_json::from_str(&arguments)
            .map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
        let name = arguments["bucket"].as_str().unwrap_or("notes");
        let bucket = match open(name) {
            Ok(bucket) => bucket,
            Err(error) => return done(shown_error(&error)),
        };
        let resumed = context.resumed.is_some();
        let list = if resumed {
            &arguments["resumed"]
        } else {
            &arguments["do"]
        };
        let mut said = Vec::new();
        for operation in list.as_array().into_iter().flatten() {
            let result = perform(&bucket, operation);
            said.push(result.unwrap_or_else(|error| shown_error(&error)));
        }
        let text = said.join(" | ");
        match arguments["then"].as_str().filter(|_| !resumed) {
            Some("trap") => std::process::abort(),
            Some("fail") => Err(ToolError::Failed(text)),
            Some("spin") => loop {
                std::hint::spin_loop();
            },
            Some("sleep") => {
                std::thread::sleep(Duration::from_secs(60));
                done(text)
            }
            Some("later") => Ok(Progress::Later(Later {
                after_ms: 20,
                state: text.into_bytes(),
            })),
            Some("ask") => {
                let action = ClientAction {
                    widget: "question".into(),
                    props: "{}".into(),
                    response_schema: None,
                    lock_input: false,
                };
                Ok(Progress::Ask(Ask {
                    action,
                    state: text.into_bytes(),
                }))
            }
            _ => done(text),
        }
    }
}

plugin::tool::export!(Program);

fn perform(bucket: &Bucket, operation: &Value) -> Result<String, Error> {
    let text = |index: usize| operation[index].as_str().unwrap_or_default();
    let names = || -> Vec<String> { strings(&operation[1]).collect() };
    Ok(match text(0) {
        "get" => bucket
            .get(text(1))?
            .map_or("-".to_owned(), |value| shown(&value)),
        "set" => {
            bucket.set(text(1), &bytes(text(2)))?;
            "ok".to_owned()
        }
        // A value of so many bytes.
        "fill" => {
            let size =
                usize::try_from(operation[2].as_u64().unwrap_or_default()).unwrap_or_default();
            bucket.set(text(1), &vec![b'x'; size])?;
            "ok".to_owned()
        }
        // So many keys that begin so.
        "many" => {
            for n in 0..operation[2].as_u64().unwrap_or_default() {
                bucket.set(&format!("{}{n:06}", text(1)), b"x")?;
            }
            "ok".to_owned()
        }
        "delete" => {
            bucket.delete(text(1))?;
            "ok".to_owned()
        }
        "exists" => bucket.exists(text(1))?.to_string(),
        "add" => atomics::increment(bucket, text(1), operation[2].as_u64().unwrap_or_default())?
            .to_string(),
        "keys" => {
            let page = bucket.list_keys(operation[1].as_u64())?;
            format!(
                "{}{}",
                page.keys.join(","),
                if page.cursor.is_some() { " …" } else { "" }
            )
        }
        // All keys, page by page: how many of how many pages, the first and the last; `delete`
        // removes them on the way.
        "walk" => walk(bucket, text(1) == "delete")?,
        "get-many" => {
            let values = batch::get_many(bucket, &names())?;
            let values: Vec<String> = values
                .iter()
                .map(|entry| {
                    entry.as_ref().map_or("-".to_owned(), |(key, value)| {
                        format!("{key}={}", shown(value))
                    })
                })
                .collect();
            values.join(",")
        }
        "set-many" => {
            let entries: Vec<(String, Vec<u8>)> = operation[1]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), bytes(value.as_str().unwrap_or_default())))
                .collect();
            batch::set_many(bucket, &entries)?;
            "ok".to_owned()
        }
        "delete-many" => {
            batch::delete_many(bucket, &names())?;
            "ok".to_owned()
        }
        // Reads, waits, and writes one more: what loses updates where nothing keeps others out.
        "read-add" => {
            let value = bucket
                .get(text(1))?
                .and_then(|value| String::from_utf8(value).ok())
                .and_then(|text| text.parse::<u64>().ok());
            std::thread::sleep(Duration::from_millis(2));
            let sum = value.unwrap_or_default() + 1;
            bucket.set(text(1), sum.to_string().as_bytes())?;
            sum.to_string()
        }
        "sleep" => {
            std::thread::sleep(Duration::from_millis(
                operation[1].as_u64().unwrap_or_default(),
            ));
            "ok".to_owned()
        }
        // One operation on another bucket.
        "in" => perform(&open(text(1))?, &operation[2])?,
        other => format!("what is {other}?"),
    })
}

fn walk(bucket: &Bucket, delete: bool) -> Result<String, Error> {
    let mut pages = 0;
    let mut keys = Vec::new();
    let mut cursor = None;
    loop {
        let page = bucket.list_keys(cursor)?;
        pages += 1;
        if delete {
            batch::delete_many(bucket, &page.keys)?;
        }
        keys.extend(page.keys);
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let sorted = keys.is_sorted();
    let first = keys.first().cloned().unwrap_or_default();
    let last = keys.last().cloned().unwrap_or_default();
    Ok(format!("{} in {pages} {sorted} {first} {last}", keys.len()))
}

fn strings(list: &Value) -> impl Iterator<Item = String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
}

fn bytes(text: &str) -> Vec<u8> {
    let Some(digits) = text.strip_prefix("0x") else {
        return text.as_bytes().to_vec();
    };
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).unwrap_or_default())
        .collect()
}

fn shown(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) if text.len() > 100 => format!("{} bytes", text.len()),
        Ok(text) => text.to_owned(),
        Err(_) => value.iter().fold("0x".to_owned(), |mut shown, byte| {
            let _ = write!(shown, "{byte:02x}");
            shown
        }),
    }
}

fn shown_error(error: &Error) -> String {
    match error {
        Error::NoSuchStore => "no: no-such-store".to_owned(),
        Error::AccessDenied => "no: access-denied".to_owned(),
        Error::Other(why) => format!("no: {why}"),
    }
}

mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/deps/keyvalue",
        world: "wasi:keyvalue/imports",
        generate_all,
    });
}
