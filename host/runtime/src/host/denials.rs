//! What a guest was refused, noted for the operator, and the refusal of every HTTP request.

use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// Refusals that are noted of one call.
const DENIALS_MAX: usize = 32;
/// Bytes of one of them.
const DENIAL_BYTES_MAX: usize = 256;
/// Bytes of an outgoing body that the host holds while nobody reads them.
const BODY_CHUNK_BYTES_MAX: usize = 64 << 10;

/// The host functions that were refused during a call, each once.
#[derive(Debug, Default)]
pub(crate) struct Denials(Vec<String>);

impl Denials {
    /// Notes one refusal.
    pub(crate) fn note(&mut self, what: &str) {
        let (what, _) = what.split_at(what.floor_char_boundary(DENIAL_BYTES_MAX));
        let what = crate::log::escaped(what);
        if self.0.len() < DENIALS_MAX && !self.0.contains(&what) {
            self.0.push(what);
        }
    }

    /// All of them. Leaves nothing behind.
    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
    }
}

type Later<T> = Box<dyn Future<Output = T> + Send>;
type Answered = Result<(http::Response<WasiBody>, Later<Result<(), Error>>), Error>;

impl WasiHttpHooks for Denials {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _processed: Later<Result<(), Error>>,
    ) -> Later<Answered> {
        let authority = request.uri().authority().map_or("", |authority| authority.as_str());
        self.note(&format!("wasi:http/outgoing-handler.handle `{authority}`"));
        Box::new(std::future::ready(Err(Error::HttpRequestDenied)))
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK_BYTES_MAX
    }
}
