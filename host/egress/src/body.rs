//! The answer and its body, which is read chunk by chunk within its limits.

use crate::awake::{Instant, Sleep, sleep_until};
use crate::dial::Deadline;
use crate::error::{Broken, EgressError, Phase, TooLarge};
use crate::exchange::Home;
use crate::exchange::{Link, failure};
use crate::headers;
use crate::limits::INFLATE_BYTES;
use crate::record::Trace;
use crate::request::RequestPermit;
use bytes::{Buf, Bytes};
use domain::egress::Target;
use domain::redact::{Redaction, Redactor};
use flate2::write::MultiGzDecoder;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::body::{Body as HttpBody, Frame, Incoming};
use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

/// An answer.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers that a caller may see.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
    /// The target that sent the answer, after redirects.
    pub target: Target,
}

impl Response {
    /// Returns an answer that no server sent: an empty JSON object.
    pub(crate) fn stand_in(target: Target) -> Self {
        let json = HeaderValue::from_static("application/json");
        Self {
            status: StatusCode::OK,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, json)]),
            body: Body::stand_in(b"{}"),
            target,
        }
    }
}

/// The body of an answer. It holds the connection and a permit of the requests under way until it
/// was read to its end, failed, or is dropped; then its record is put.
///
/// Reading fails when the body is larger than was granted, before or after decompression, when it
/// takes longer than the request may in all, or when nothing comes for too long. After an error
/// comes nothing more.
pub struct Body(Content);

/// The content of a body.
enum Content {
    /// It comes over a connection.
    Open(Box<Open>),
    /// It stands in for one that no server sent.
    StandIn(Bytes),
    /// There is nothing more.
    Ended,
}

/// A body that has not ended.
pub(crate) struct Open {
    pub(crate) incoming: Incoming,
    pub(crate) link: Link,
    /// The pool to which the connection returns when all was read.
    pub(crate) home: Option<Home>,
    pub(crate) gzip: Option<Gzip>,
    /// Bytes that may still come, as they are sent.
    pub(crate) wire_left: u64,
    /// Bytes that may still come out.
    pub(crate) left: u64,
    pub(crate) bytes_max: u64,
    pub(crate) over: Pin<Box<Sleep>>,
    pub(crate) deadline: Deadline,
    /// Runs while the server is waited for, and not while the caller is.
    pub(crate) idle: Option<Pin<Box<Sleep>>>,
    pub(crate) idle_ms_max: u64,
    pub(crate) redactor: Redactor,
    /// The same at work on the body; none if there is nothing to take out, or no more.
    pub(crate) redaction: Option<Redaction>,
    /// The trailers, if they were held back to follow the last data.
    pub(crate) last: Option<HeaderMap>,
    pub(crate) trace: Trace,
    pub(crate) _request_permit: RequestPermit,
}

impl Body {
    pub(crate) fn new(open: Open) -> Self {
        Self(Content::Open(Box::new(open)))
    }

    /// Returns a body that no server sent.
    pub(crate) fn stand_in(content: &'static [u8]) -> Self {
        Self(Content::StandIn(Bytes::from_static(content)))
    }

    fn has_ended(&self) -> bool {
        matches!(self.0, Content::Ended)
    }

    fn take(&mut self) -> Content {
        std::mem::replace(&mut self.0, Content::Ended)
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// As reading chunk by chunk.
    pub async fn read_all(mut self) -> Result<Bytes, EgressError> {
        let mut all = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut self).poll_frame(cx)).await {
            if let Some(data) = frame?.data_ref() {
                all.extend_from_slice(data);
            }
        }
        Ok(all.into())
    }

    /// Ends the reading of a body whose content is complete before its end has come, as an event
    /// stream is at its last event. Its record says `done` and not `dropped`.
    pub fn complete(mut self) {
        if let Content::Open(open) = &mut self.0 {
            open.trace.end("done");
        }
    }

    /// The next chunk; none at the end. Trailers are passed over.
    ///
    /// # Errors
    /// As reading frame by frame.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await {
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = EgressError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, EgressError>>> {
        let open = match &mut self.0 {
            Content::Open(open) => open,
            Content::StandIn(content) => {
                let content = std::mem::take(content);
                self.0 = Content::Ended;
                return Poll::Ready(Some(Ok(Frame::data(content))));
            }
            Content::Ended => return Poll::Ready(None),
        };
        let next = match open.poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(next) => next,
        };
        match &next {
            Ok(Some(_)) => return Poll::Ready(next.transpose()),
            Ok(None) => open.trace.end("done"),
            Err(error) => open.trace.fail(error),
        }
        // The connection, the permit and the record go now and not when the caller thinks of it.
        if let (Content::Open(open), Ok(_)) = (self.take(), &next) {
            open.go_home();
        }
        Poll::Ready(next.transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended()
    }
}

/// Keeps the connection of a dropped body whose end has come by then, although it was not read to
/// it. A reader of an event stream stops at its last event.
impl Drop for Body {
    fn drop(&mut self) {
        if let Content::Open(open) = self.take() {
            open.go_home();
        }
    }
}

impl Open {
    /// Gives the connection back, if it is kept and another request can be sent over it.
    fn go_home(self) {
        let Self {
            incoming,
            link,
            home,
            ..
        } = self;
        drop(incoming);
        if let Some(home) = home {
            home.receive(link);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, EgressError>> {
        if self.over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(self.deadline.over()));
        }
        loop {
            if let Some(gzip) = &mut self.gzip
                && let Some(out) = gzip.next().map_err(Broken::Gzip)?
            {
                match self.deliver(out).transpose() {
                    Some(ready) => return Poll::Ready(ready.map(Some)),
                    None => continue,
                }
            }
            // What the connection breaks with, the body breaks with too, after what came before it.
            let broken = self.link.drive(cx).err();
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => {
                    return match broken {
                        None => self.wait(cx),
                        Some(error) => Poll::Ready(Err(self.failed(error))),
                    };
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(self.failed(error))),
                Poll::Ready(None) => return Poll::Ready(self.finish()),
                Poll::Ready(Some(Ok(frame))) => {
                    self.idle = None;
                    if let Some(ready) = self.take(frame).transpose() {
                        return Poll::Ready(ready.map(Some));
                    }
                }
            }
        }
    }

    fn failed(&self, error: hyper::Error) -> EgressError {
        failure(error, self.trace.tally())
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, EgressError>> {
        let ms_max = self.idle_ms_max;
        let idle = self.idle.get_or_insert_with(|| {
            Box::pin(sleep_until(Instant::now() + Duration::from_millis(ms_max)))
        });
        idle.as_mut().poll(cx).map(|()| {
            Err(EgressError::TimedOut {
                phase: Phase::Idle,
                ms_max,
            })
        })
    }

    fn too_large(&self) -> EgressError {
        TooLarge::ResponseBody {
            bytes_max: self.bytes_max,
        }
        .into()
    }

    /// A frame as it came: what is plain goes on, what is packed goes to be unpacked, trailers are
    /// sifted.
    fn take(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, EgressError> {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                let trailers = frame
                    .trailers_ref()
                    .map(|trailers| headers::trailers(trailers, &self.redactor))
                    .unwrap_or_default();
                self.last = (!trailers.is_empty()).then_some(trailers);
                return Ok(None);
            }
        };
        self.wire_left = self
            .wire_left
            .checked_sub(data.len() as u64)
            .ok_or_else(|| self.too_large())?;
        match &mut self.gzip {
            Some(gzip) => {
                gzip.feed(data);
                Ok(None)
            }
            None => self.deliver(data),
        }
    }

    fn deliver(&mut self, data: Bytes) -> Result<Option<Frame<Bytes>>, EgressError> {
        self.left = self
            .left
            .checked_sub(data.len() as u64)
            .ok_or_else(|| self.too_large())?;
        let data = match &mut self.redaction {
            None => data,
            Some(redaction) => redaction.push(&data).into(),
        };
        // All of it may be the beginning of a secret.
        Ok((!data.is_empty()).then(|| Frame::data(data)))
    }

    /// Returns the frame that still follows when all has come: the bytes that were held back, then
    /// the trailers.
    fn finish(&mut self) -> Result<Option<Frame<Bytes>>, EgressError> {
        if let Some(gzip) = &mut self.gzip {
            gzip.finish().map_err(Broken::Gzip)?;
        }
        let pending = self
            .redaction
            .take()
            .map(|mut redaction| redaction.finish())
            .filter(|pending| !pending.is_empty());
        Ok(pending
            .map(|pending| Frame::data(pending.into()))
            .or_else(|| self.last.take().map(Frame::trailers)))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("ended", &self.has_ended())
            .finish()
    }
}

/// A compressed body on its way. It is decompressed in small steps, so that a bomb is stopped
/// before it has grown.
#[derive(Debug)]
pub(crate) struct Gzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    input: Bytes,
    begun: bool,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Self {
            decoder: MultiGzDecoder::new(Vec::new()),
            input: Bytes::new(),
            begun: false,
        }
    }

    /// Hands over what came. All that came before must have been taken out.
    pub(crate) fn feed(&mut self, input: Bytes) {
        self.begun |= !input.is_empty();
        self.input = input;
    }

    /// The next chunk that comes out, at most about half a megabyte; none if more must come in
    /// first.
    pub(crate) fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.input.is_empty() {
            let step = self.input.get(..INFLATE_BYTES).unwrap_or(&self.input);
            let taken = self.decoder.write(step)?;
            if taken == 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.input.advance(taken);
            if self.decoder.header().is_some() {
                self.decoder.flush()?;
            }
            let out = std::mem::take(self.decoder.get_mut());
            if !out.is_empty() {
                return Ok(Some(out.into()));
            }
        }
        Ok(None)
    }

    /// Checks that the end is one. A body that never began is an empty one.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.begun {
            self.decoder.try_finish()
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn pressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Unpacks in chunks of a size; the sizes of what came out, and all of it.
    fn unpacked(packed: &[u8], part: usize) -> io::Result<(usize, Vec<u8>)> {
        let mut gzip = Gzip::new();
        let mut largest = 0;
        let mut all = Vec::new();
        for part in packed.chunks(part) {
            gzip.feed(Bytes::copy_from_slice(part));
            while let Some(out) = gzip.next()? {
                largest = largest.max(out.len());
                all.extend_from_slice(&out);
            }
        }
        gzip.finish().map(|()| (largest, all))
    }

    #[test]
    fn what_was_packed_comes_out_however_it_was_cut() {
        let text: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut packed = pressed(&text);
        packed.extend(pressed(b"and a second member"));
        for part in [1, 7, 511, 512, 513, 100_000] {
            let (_, out) = unpacked(&packed, part).unwrap();
            assert_eq!(out.len(), text.len() + 19, "{part}");
            assert!(
                out.starts_with(&text) && out.ends_with(b"and a second member"),
                "{part}"
            );
        }
    }

    #[test]
    fn a_bomb_comes_out_in_pieces_that_fit() {
        let packed = pressed(&vec![0; 64 << 20]);
        let (largest, out) = unpacked(&packed, packed.len()).unwrap();
        assert_eq!(out.len(), 64 << 20);
        assert!(largest <= 1 << 20, "{largest}");
    }

    #[test]
    fn what_is_cut_or_no_gzip_is_an_error_and_nothing_at_all_is_empty() {
        let packed = pressed(b"some words that go on for a while");
        assert!(unpacked(&packed[..packed.len() - 1], 4).is_err());
        assert!(unpacked(b"no gzip at all, however long it is", 100).is_err());
        assert!(unpacked(&[&packed[..], b"rubbish behind"].concat(), 100).is_err());
        assert_eq!(unpacked(b"", 1).unwrap().1, b"");
    }
}
