//! A tool that does to granted folders everything that its caller lists. It calls the plain
//! functions of `wasi:filesystem` and reports the result of each.
//!
//! Its argument is a list of objects. `op` says what to do, `on` names an open folder or file: a
//! granted folder by its place, everything else by the name that an `open` gave it with `as`. The
//! answers are a list of texts: `ok`, what was read, or the name of the error code.

use plugin::tool::{CallContext, Guest, Progress, ToolDefinition, ToolError, done, named};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
    filesystem_error_code,
};
use wasip2::io::streams::{OutputStream, StreamError};

/// Bytes that are read or written at once.
const CHUNK_BYTES: usize = 4_096;
/// A handle that was never given out.
const FORGED: u32 = 77_777;

struct Program;

impl Guest for Program {
    fn describe() -> Vec<ToolDefinition> {
        vec![ToolDefinition {
            capabilities: vec!["files.read".into(), "files.write".into()],
            ..named("burgle")
        }]
    }

    fn call(
        _context: CallContext,
        _name: String,
        arguments: String,
    ) -> Result<Progress, ToolError> {
        let listed: Value = serde_json::from_str(&arguments)
            .map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
        let mut open: HashMap<String, Descriptor> = get_directories()
            .into_iter()
            .map(|(folder, at)| (at, folder))
            .collect();
        let answers = listed["ops"].as_array().into_iter().flatten().map(|op| {
            match Op(op).perform(&mut open) {
                Ok(answer) => answer,
                Err(code) => code.name().to_owned(),
            }
        });
        done(Value::from(answers.collect::<Vec<String>>()).to_string())
    }
}

plugin::tool::export!(Program);

type Answer = Result<String, ErrorCode>;

struct Op<'a>(&'a Value);

impl Op<'_> {
    fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    fn number(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_default()
    }

    fn is(&self, key: &str) -> bool {
        self.0[key].as_bool().unwrap_or_default()
    }

    fn follow(&self) -> PathFlags {
        if self.is("follow") {
            PathFlags::SYMLINK_FOLLOW
        } else {
            PathFlags::empty()
        }
    }

    fn perform(&self, open: &mut HashMap<String, Descriptor>) -> Answer {
        let name = self.text("on");
        match self.text("op") {
            "close" => {
                return Ok(if open.remove(name).is_some() {
                    "ok".into()
                } else {
                    "not open".into()
                });
            }
            "open" => {
                let Some(on) = open.get(name) else {
                    return Ok(format!("`{name}` is not open"));
                };
                let opened = self.open(on)?;
                open.insert(self.text("as").to_owned(), opened);
                return Ok("ok".into());
            }
            "forge" => {
                return Ok(kind(
                    unsafe { Descriptor::from_handle(FORGED) }.stat()?.type_,
                ));
            }
            "use-after-drop" => {
                let handle = open[name].handle();
                open.remove(name);
                return Ok(kind(
                    unsafe { Descriptor::from_handle(handle) }.stat()?.type_,
                ));
            }
            _ => {}
        }
        let Some(on) = open.get(name) else {
            return Ok(format!("`{name}` is not open"));
        };
        let path = self.text("path");
        let to = self.text("to");
        let other = || open.get(self.text("toOn")).unwrap_or(on);
        match self.text("op") {
            "stat" => on
                .stat_at(self.follow(), path)
                .map(|stat| format!("{} {}", kind(stat.type_), stat.size)),
            "hash" => on.metadata_hash_at(self.follow(), path).map(ok),
            "touch" => on
                .set_times_at(self.follow(), path, NewTimestamp::Now, NewTimestamp::Now)
                .map(ok),
            "readlink" => on.readlink_at(path),
            "mkdir" => on.create_directory_at(path).map(ok),
            "rmdir" => on.remove_directory_at(path).map(ok),
            "unlink" => on.unlink_file_at(path).map(ok),
            "symlink" => on.symlink_at(to, path).map(ok),
            "rename" => on.rename_at(path, other(), to).map(ok),
            "link" => on.link_at(self.follow(), path, other(), to).map(ok),
            "list" => list(on),
            "read" => on
                .read(CHUNK_BYTES as u64, 0)
                .map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned()),
            "read-stream" => read(on),
            "size" => on.set_size(self.number("size")).map(ok),
            "write" => on
                .write(self.text("text").as_bytes(), self.number("offset"))
                .map(|written| written.to_string()),
            "write-stream" => write(
                &on.write_via_stream(self.number("offset"))?,
                self.text("text").as_bytes(),
            ),
            "append" => write(&on.append_via_stream()?, self.text("text").as_bytes()),
            "zeroes" => zeroes(&on.write_via_stream(0)?, self.number("bytes")),
            "fill" => Ok(fill(&on.append_via_stream()?, self.number("bytes"))),
            "breed" => Ok(breed(on, self.number("count"))),
            "hammer" => Ok(self.hammer(on)),
            "garbled" => {
                // Not UTF-8: no path may be.
                let garbled = unsafe { String::from_utf8_unchecked(vec![b'a', 0xff]) };
                on.stat_at(PathFlags::empty(), &garbled)
                    .map(|stat| kind(stat.type_))
            }
            unknown => Ok(format!("`{unknown}` is not known")),
        }
    }

    fn open(&self, on: &Descriptor) -> Result<Descriptor, ErrorCode> {
        let flag = |key, flag: OpenFlags| {
            if self.is(key) {
                flag
            } else {
                OpenFlags::empty()
            }
        };
        let how = flag("create", OpenFlags::CREATE)
            | flag("exclusive", OpenFlags::EXCLUSIVE)
            | flag("truncate", OpenFlags::TRUNCATE)
            | flag("directory", OpenFlags::DIRECTORY);
        let what = if self.is("write") {
            DescriptorFlags::READ | DescriptorFlags::WRITE
        } else {
            DescriptorFlags::READ
        };
        on.open_at(self.follow(), self.text("path"), how, what)
    }

    /// Opens and reads a path again and again. Returns all the different results.
    fn hammer(&self, on: &Descriptor) -> String {
        let once = || {
            let opened = self.open(on).map_err(|code| code.name().to_owned())?;
            read(&opened).map_err(|code| code.name().to_owned())
        };
        let seen: BTreeSet<String> = (0..self.number("times"))
            .map(|_| once().unwrap_or_else(|code| code))
            .collect();
        seen.into_iter().collect::<Vec<_>>().join(",")
    }
}

fn ok<T>(_: T) -> String {
    "ok".into()
}

fn kind(of: DescriptorType) -> String {
    match of {
        DescriptorType::Directory => "folder",
        DescriptorType::RegularFile => "file",
        DescriptorType::SymbolicLink => "link",
        _ => "other",
    }
    .into()
}

fn list(on: &Descriptor) -> Answer {
    let entries = on.read_directory()?;
    let mut names = Vec::new();
    while let Some(entry) = entries.read_directory_entry()? {
        names.push(entry.name);
    }
    names.sort();
    Ok(names.join(","))
}

fn read(on: &Descriptor) -> Answer {
    let stream = on.read_via_stream(0)?;
    let mut all = Vec::new();
    loop {
        match stream.blocking_read(CHUNK_BYTES as u64) {
            Ok(bytes) => all.extend(bytes),
            Err(StreamError::Closed) => return Ok(String::from_utf8_lossy(&all).into_owned()),
            Err(error) => return Err(code_of(&error)),
        }
    }
}

fn write(stream: &OutputStream, bytes: &[u8]) -> Answer {
    for chunk in bytes.chunks(CHUNK_BYTES) {
        stream
            .blocking_write_and_flush(chunk)
            .map_err(|error| code_of(&error))?;
    }
    Ok("ok".into())
}

fn zeroes(stream: &OutputStream, bytes: u64) -> Answer {
    stream
        .blocking_write_zeroes_and_flush(bytes)
        .map(ok)
        .map_err(|error| code_of(&error))
}

/// Writes without waiting for each write to end, as far as it goes.
fn fill(stream: &OutputStream, bytes: u64) -> String {
    let mut written = 0;
    let chunk = [b'x'; CHUNK_BYTES];
    while written < bytes {
        stream.subscribe().block();
        let wrote = stream.check_write().and_then(|permitted| {
            let length = permitted.min(chunk.len() as u64).min(bytes - written);
            stream.write(&chunk[..length as usize]).map(|()| length)
        });
        match wrote {
            Ok(length) => written += length,
            Err(error) => return format!("{written} handed over, {}", code_of(&error).name()),
        }
    }
    match stream.blocking_flush() {
        Ok(()) => format!("{written} handed over"),
        Err(error) => format!("{written} handed over, {}", code_of(&error).name()),
    }
}

/// Makes empty files, as many as it may.
fn breed(on: &Descriptor, count: u64) -> String {
    for made in 0..count {
        let opened = on.open_at(
            PathFlags::empty(),
            &format!("bred-{made}"),
            OpenFlags::CREATE | OpenFlags::EXCLUSIVE,
            DescriptorFlags::WRITE,
        );
        if let Err(code) = opened {
            return format!("{made} made, {}", code.name());
        }
    }
    format!("{count} made")
}

fn code_of(error: &StreamError) -> ErrorCode {
    match error {
        StreamError::LastOperationFailed(error) => {
            filesystem_error_code(error).unwrap_or(ErrorCode::Io)
        }
        StreamError::Closed => ErrorCode::Pipe,
    }
}
