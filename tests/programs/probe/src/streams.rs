//! Streams and polls. What they carry was decided where the handle came from; stdin is at its end,
//! stdout and stderr are the log.

use crate::{Rows, said};
use wasip2::cli::{stderr, stdin, stdout};
use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::poll;

pub(crate) fn probe(rows: &mut Rows) {
    let input = stdin::get_stdin();
    rows.say("wasi:cli/stdin.get-stdin", "answers");
    let mut say = |name: &str, what: String| {
        rows.say(
            &format!("wasi:io/streams.[method]input-stream.{name}"),
            what,
        )
    };
    say("subscribe", "answers".to_owned());
    input.subscribe().block();
    say("read", said(&input.read(1)));
    say("blocking-read", said(&input.blocking_read(1)));
    say("skip", said(&input.skip(1)));
    say("blocking-skip", said(&input.blocking_skip(1)));

    stderr::get_stderr();
    rows.say("wasi:cli/stderr.get-stderr", "answers");
    let output = stdout::get_stdout();
    rows.say("wasi:cli/stdout.get-stdout", "answers");
    let mut say = |name: &str, what: String| {
        rows.say(
            &format!("wasi:io/streams.[method]output-stream.{name}"),
            what,
        )
    };
    output.subscribe().block();
    say("subscribe", "answers".to_owned());
    say("check-write", said(&output.check_write()));
    say("write", said(&output.write(b"one\n")));
    say("flush", said(&output.flush()));
    say("blocking-flush", said(&output.blocking_flush()));
    say(
        "blocking-write-and-flush",
        said(&output.blocking_write_and_flush(b"two\n")),
    );
    say(
        "blocking-write-zeroes-and-flush",
        said(&output.blocking_write_zeroes_and_flush(1)),
    );
    let _ = output.check_write();
    say("write-zeroes", said(&output.write_zeroes(1)));
    let _ = output.blocking_flush();
    let _ = output.check_write();
    say("splice", said(&output.splice(&input, 1)));
    say("blocking-splice", said(&output.blocking_splice(&input, 1)));

    let soon = subscribe_duration(1);
    soon.ready();
    rows.say("wasi:io/poll.[method]pollable.ready", "answers");
    soon.block();
    rows.say("wasi:io/poll.[method]pollable.block", "answers");
    poll(&[&soon]);
    rows.say("wasi:io/poll.poll", "answers");
}
