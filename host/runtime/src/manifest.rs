//! The manifest in a component's bytes: found and written without compiling or running any of it.

use domain::manifest::{BadManifest, Manifest, SECTION};
use serde_json::json;
use std::sync::Arc;
use wasmparser::{BinaryReader, Parser, Payload};

/// Levels of modules and components within each other that are searched. A linker puts the section
/// into the module, and the module into the component.
const DEPTH_MAX: usize = 8;

/// Bytes before the first section of a module and of a component.
const HEADER_BYTES: usize = 8;
/// The id of custom sections.
const CUSTOM_SECTION: u8 = 0;
/// The id of a component's sections with a module in them.
const MODULE_SECTION: u8 = 1;
/// The id of a component's sections with a component in them.
const COMPONENT_SECTION: u8 = 4;
/// Bits of a number in each byte that WebAssembly writes it in.
const NUMBER_BITS: u32 = 7;
/// The mark of a byte that another byte of the same number follows.
const NUMBER_GOES_ON: u8 = 0x80;

/// The reason why a manifest cannot be written into some bytes.
#[derive(Debug, thiserror::Error)]
pub enum StampError {
    /// The bytes are something else.
    #[error("this is not a WebAssembly component")]
    NotAComponent,
    /// Their sections do not fit together.
    #[error("the component is cut short, or not sound")]
    Malformed(#[from] wasmparser::Error),
}

/// The manifest of a component as it was read; none when it has none.
pub(crate) type ReadManifest = Option<Arc<Result<Manifest, BadManifest>>>;

/// Reads the manifest of a component. One that is not sound stops nothing: the reason is kept.
pub(crate) fn read(wasm: &[u8]) -> ReadManifest {
    let mut found = None;
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload {
            Ok(Payload::CustomSection(section)) if section.name() == SECTION => {
                if found.is_some() {
                    return Some(Arc::new(Err(BadManifest::Several)));
                }
                found = Some(section.data());
            }
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => {
                depth += 1;
                if depth > DEPTH_MAX {
                    break;
                }
            }
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(_) => {}
            // The compiler says what is wrong.
            Err(_) => break,
        }
    }
    found.map(|bytes| Arc::new(Manifest::parse(bytes)))
}

/// Returns a component with this manifest, in place of all that it carries.
///
/// # Errors
/// The bytes are no component, or not all of one.
pub fn stamped(wasm: &[u8], manifest: &Manifest) -> Result<Vec<u8>, StampError> {
    if !Parser::is_component(wasm) {
        return Err(StampError::NotAComponent);
    }
    let mut stamped = without_manifests(wasm, 0)?;
    let mut content = Vec::new();
    put_number(&mut content, SECTION.len());
    content.extend_from_slice(SECTION.as_bytes());
    content.extend_from_slice(json!(manifest).to_string().as_bytes());
    put_section(&mut stamped, CUSTOM_SECTION, &content);
    Ok(stamped)
}

/// Copies a component or a module without its manifests, as deep as [`read`] looks for them.
fn without_manifests(binary: &[u8], depth: usize) -> Result<Vec<u8>, wasmparser::Error> {
    let mut reader = BinaryReader::new(binary, 0);
    let header = reader.read_bytes(HEADER_BYTES)?;
    let may_nest = Parser::is_component(header) && depth < DEPTH_MAX;
    let mut kept = header.to_vec();
    while !reader.eof() {
        let id = reader.read_u8()?;
        let size = reader.read_var_u32()?;
        let content = reader.read_bytes(size as usize)?;
        match id {
            CUSTOM_SECTION if is_manifest(content) => {}
            MODULE_SECTION | COMPONENT_SECTION if may_nest => {
                put_section(&mut kept, id, &without_manifests(content, depth + 1)?);
            }
            _ => put_section(&mut kept, id, content),
        }
    }
    Ok(kept)
}

/// Returns whether the content of a custom section, which begins with its name, is a manifest.
fn is_manifest(content: &[u8]) -> bool {
    BinaryReader::new(content, 0)
        .read_string()
        .is_ok_and(|name| name == SECTION)
}

fn put_section(binary: &mut Vec<u8>, id: u8, content: &[u8]) {
    binary.push(id);
    put_number(binary, content.len());
    binary.extend_from_slice(content);
}

fn put_number(binary: &mut Vec<u8>, mut number: usize) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= NUMBER_BITS;
        if number == 0 {
            binary.push(low);
            return;
        }
        binary.push(low | NUMBER_GOES_ON);
    }
}

#[cfg(test)]
mod tests {
    use super::{StampError, read, stamped};
    use domain::manifest::{BadManifest, MANIFEST_BYTES_MAX, Manifest};

    /// A component with a module in it that has these sections; with its own ones before it.
    fn component(own: &[&str], inner: &[&str]) -> Vec<u8> {
        let sections = |sections: &[&str]| {
            sections
                .iter()
                .map(|data| format!("(@custom \"agent-host:manifest\" {data:?})"))
                .collect::<String>()
        };
        let text = format!(
            "(component {} (component (core module {})))",
            sections(own),
            sections(inner)
        );
        wat::parse_str(text).unwrap()
    }

    const SOUND: &str = r#"{"manifest":1,"version":"0.2.0"}"#;

    #[test]
    fn a_manifest_is_found_in_the_component_and_in_a_module_inside() {
        for wasm in [component(&[SOUND], &[]), component(&[], &[SOUND])] {
            let found = read(&wasm).unwrap();
            assert_eq!(found.as_ref().as_ref().unwrap().version, "0.2.0");
        }
        assert!(read(&component(&[], &[])).is_none());
    }

    #[test]
    fn a_manifest_that_is_not_sound_is_kept_as_the_reason() {
        let large = "x".repeat(MANIFEST_BYTES_MAX + 1);
        for (inner, reported) in [
            (vec!["garbage"], "not a manifest of layout 1"),
            (vec![large.as_str()], "16384 at most"),
            (vec![SOUND, SOUND], "more than one"),
        ] {
            let found = read(&component(&[], &inner)).unwrap();
            let bad = found.as_ref().clone().unwrap_err().to_string();
            assert!(bad.contains(reported), "{bad}");
        }
        let hidden = "{\"manifest\":1,\"version\":\"1\u{202e}\"}";
        let found = read(&component(&[], &[hidden])).unwrap();
        assert!(matches!(*found, Err(BadManifest::Wording(_))));
    }

    #[test]
    fn what_is_cut_short_or_nested_without_end_is_given_up() {
        let whole = component(&[], &[SOUND]);
        for end in 0..whole.len() {
            let _ = read(&whole[..end]);
        }
        let nested = format!("{}{}", "(component ".repeat(40), ")".repeat(40));
        let inner = format!("(component (@custom \"agent-host:manifest\" {SOUND:?}))");
        let deep = nested.replacen("(component )", &inner, 1);
        assert!(read(&wat::parse_str(deep).unwrap()).is_none());
    }

    #[test]
    fn a_stamped_manifest_takes_the_place_of_all_that_a_component_carries() {
        let bare = component(&[], &[]);
        let manifest = Manifest::parse(SOUND.as_bytes()).unwrap();
        let long = format!(r#"{{"manifest":1,"authors":["{}"]}}"#, "a".repeat(900));
        let long = Manifest::parse(long.as_bytes()).unwrap();
        for embedded in [
            bare.clone(),
            component(&["garbage"], &[]),
            component(&[SOUND, SOUND], &[SOUND, SOUND]),
            stamped(&bare, &long).unwrap(),
        ] {
            for manifest in [&manifest, &long] {
                let stamped = stamped(&embedded, manifest).unwrap();
                let found = read(&stamped).unwrap();
                assert_eq!(found.as_ref().as_ref(), Ok(manifest));
                assert!(stamped.starts_with(&bare), "the code stays as it was");
            }
        }
    }

    #[test]
    fn nothing_but_a_whole_component_is_stamped() {
        let manifest = Manifest::parse(SOUND.as_bytes()).unwrap();
        let module = wat::parse_str("(module)").unwrap();
        for bytes in [module.as_slice(), b"\x7fELF", b""] {
            let refused = stamped(bytes, &manifest).unwrap_err();
            assert!(matches!(refused, StampError::NotAComponent), "{refused}");
        }
        let whole = component(&[], &["garbage"]);
        let refused = stamped(&whole[..whole.len() - 1], &manifest).unwrap_err();
        assert!(matches!(refused, StampError::Malformed(_)), "{refused}");
    }
}
