//! The manifest in a component's bytes: found without compiling or running any of it.

use domain::manifest::{BadManifest, Manifest, SECTION};
use std::sync::Arc;
use wasmparser::{Parser, Payload};

/// Levels of modules and components within each other that are searched. A linker puts the section
/// into the module, and the module into the component.
const DEPTH_MAX: usize = 8;

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

#[cfg(test)]
mod tests {
    use super::read;
    use domain::manifest::{BadManifest, MANIFEST_BYTES_MAX};

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
        for (inner, told) in [
            (vec!["garbage"], "not a manifest of layout 1"),
            (vec![large.as_str()], "16384 at most"),
            (vec![SOUND, SOUND], "more than one"),
        ] {
            let found = read(&component(&[], &inner)).unwrap();
            let bad = found.as_ref().clone().unwrap_err().to_string();
            assert!(bad.contains(told), "{bad}");
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
}
