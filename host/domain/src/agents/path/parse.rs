//! Reading paths from left to right, so that each segment has one meaning at its position.

use super::segment::{ConnectorName, Name, SegmentFault, Tag, fault_of_user, shown};
use super::{
    AgentPath, Allowed, Folder, PATH_BYTES_MAX, PATH_SEGMENTS_MAX, PathError, Root, Suffix,
};
use crate::access::user::RESERVED_WORDS;
use crate::values::text::serde_as_text;
use std::str::{FromStr, Split};

/// The state of reading a path.
struct Reader<'a> {
    path: &'a str,
    segments: Split<'a, char>,
    /// The number of the segment that was read last, from 1.
    place: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let segment = self.segments.next()?;
        self.place += 1;
        Some(segment)
    }

    fn needs(&mut self, allowed: Allowed) -> Result<&'a str, PathError> {
        self.next().ok_or_else(|| PathError::Ends {
            path: self.shown(),
            place: self.place + 1,
            allowed,
        })
    }

    /// Returns the error for the segment that was read last.
    fn wrong(&self, segment: &str, fault: SegmentFault, allowed: Allowed) -> PathError {
        PathError::Segment {
            path: self.shown(),
            place: self.place,
            segment: shown(segment),
            fault,
            allowed,
        }
    }

    /// The whole path, which is short because a longer one is not read.
    fn shown(&self) -> String {
        self.path.escape_debug().to_string()
    }

    fn root(&mut self) -> Result<Root, PathError> {
        let first = self.needs(Allowed::User)?;
        if first == "system" {
            let tag = self.needs(Allowed::Tag)?;
            return Tag::check(tag)
                .map(Root::System)
                .map_err(|fault| self.wrong(tag, fault, Allowed::Tag));
        }
        let user = first
            .parse()
            .map_err(|_| self.wrong(first, fault_of_user(first), Allowed::User))?;
        let second = self.needs(Allowed::Second)?;
        let Some(folder) = Folder::ALL
            .into_iter()
            .find(|folder| folder.as_str() == second)
            .filter(|folder| *folder != Folder::App || self.names_an_app())
        else {
            let connector = ConnectorName::check(second)
                .map_err(|fault| self.wrong(second, fault, Allowed::Second))?;
            return Ok(Root::Connector { user, connector });
        };
        let name = self.needs(Allowed::Name)?;
        let name = Name::check(name).map_err(|fault| self.wrong(name, fault, Allowed::Name))?;
        Ok(Root::Named { user, folder, name })
    }

    /// Returns whether the name of an app follows. A connector may have the name `app`. Then its
    /// segment is the last, or is followed by what may follow an agent's path.
    fn names_an_app(&self) -> bool {
        match self.segments.clone().next() {
            None | Some("sub" | "memory" | "search") => false,
            Some(_) => true,
        }
    }

    fn suffix(&mut self, word: &str) -> Result<Suffix, PathError> {
        match word {
            "sub" => self.index().map(Suffix::Sub),
            "search" => self.index().map(Suffix::Search),
            "memory" => Ok(Suffix::Memory),
            "" => Err(self.wrong(word, SegmentFault::Empty, Allowed::Suffix)),
            word if RESERVED_WORDS.contains(&word) => {
                Err(self.wrong(word, SegmentFault::Reserved, Allowed::Suffix))
            }
            word => Err(self.wrong(word, SegmentFault::Unknown, Allowed::Suffix)),
        }
    }

    fn index(&mut self) -> Result<u32, PathError> {
        let text = self.needs(Allowed::Index)?;
        index(text).map_err(|fault| self.wrong(text, fault, Allowed::Index))
    }
}

/// A number in its one spelling; `+1`, `01` and `1_0` are refused.
fn index(text: &str) -> Result<u32, SegmentFault> {
    if text.is_empty() {
        return Err(SegmentFault::Empty);
    }
    if let Some(sign) = text.chars().find(|sign| !sign.is_ascii_digit()) {
        return Err(SegmentFault::Sign(sign));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(SegmentFault::LeadingZero);
    }
    // It has only digits, so the only fault is that it is larger than any index.
    text.parse().map_err(|_| SegmentFault::TooLarge)
}

serde_as_text!(AgentPath::from_str);

impl FromStr for AgentPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong { bytes: text.len() });
        }
        let Some(inside) = text.strip_prefix('/') else {
            return Err(PathError::NotAbsolute { given: shown(text) });
        };
        let segments = inside.split('/').count();
        if segments > PATH_SEGMENTS_MAX {
            return Err(PathError::TooDeep { segments });
        }
        let mut reader = Reader {
            path: text,
            segments: inside.split('/'),
            place: 0,
        };
        let root = reader.root()?;
        let mut suffixes = Vec::new();
        while let Some(word) = reader.next() {
            suffixes.push(reader.suffix(word)?);
        }
        Ok(Self {
            text: text.to_owned(),
            root,
            suffixes,
        })
    }
}
