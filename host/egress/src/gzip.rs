//! Decompression in small steps, so that a bomb is stopped before it has grown.

use crate::limits::INFLATE_BYTES;
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use std::io::{self, Write};

/// A compressed body on its way.
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

    /// The next piece that comes out, at most about half a megabyte; none if more must come in
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

    /// Unpacks in pieces of a size; the sizes of what came out, and all of it.
    fn unpacked(packed: &[u8], piece: usize) -> io::Result<(usize, Vec<u8>)> {
        let mut gzip = Gzip::new();
        let mut largest = 0;
        let mut all = Vec::new();
        for piece in packed.chunks(piece) {
            gzip.feed(Bytes::copy_from_slice(piece));
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
        for piece in [1, 7, 511, 512, 513, 100_000] {
            let (_, out) = unpacked(&packed, piece).unwrap();
            assert_eq!(out.len(), text.len() + 19, "{piece}");
            assert!(
                out.starts_with(&text) && out.ends_with(b"and a second member"),
                "{piece}"
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
