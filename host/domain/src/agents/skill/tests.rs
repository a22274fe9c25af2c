//! Components and folders as skills: what is offered, made, read and left out.

use super::{Offer, SkillFault, SkillFolder, SkillSet, bash, is_listed, offer, skills_of};
use crate::access::tool::ToolDefinition;
use crate::agents::definition::Definition;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn definition(more: &Value) -> Definition {
    let mut definition = json!({ "agentId": "a", "displayName": "A" });
    let fields = definition.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    serde_json::from_value(definition).unwrap()
}

fn tool(name: &str) -> ToolDefinition {
    serde_json::from_value(json!({
        "name": name, "description": "Adds a note. It is kept.", "effect": "idempotent",
        "arguments": { "type": "object", "required": ["text"], "properties": {
            "text": { "type": "string", "description": "The note." },
            "tags": { "type": "array" },
        } },
    }))
    .unwrap()
}

fn folder(id: &str, files: &[(&str, &str)]) -> Result<SkillFolder, SkillFault> {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    SkillFolder::read(id, files.collect())
}

#[test]
fn exposure_and_lists_say_in_which_form_a_component_is_offered() {
    for (more, notes, web) in [
        (json!({}), Offer::Tools, Offer::Tools),
        (
            json!({ "skillDenylist": ["*"] }),
            Offer::Tools,
            Offer::Tools,
        ),
        (
            json!({ "toolExposure": "skills" }),
            Offer::Skill,
            Offer::Skill,
        ),
        (
            json!({ "toolExposure": "skills", "skillAllowlist": ["no*"] }),
            Offer::Skill,
            Offer::Nothing,
        ),
        (
            json!({ "toolExposure": "mixed", "skillAllowlist": ["notes"] }),
            Offer::Skill,
            Offer::Tools,
        ),
        (
            json!({ "toolExposure": "mixed", "skillDenylist": ["notes"] }),
            Offer::Tools,
            Offer::Skill,
        ),
        (
            json!({ "toolExposure": "mixed", "skillAllowlist": ["*"], "skillDenylist": ["n*"] }),
            Offer::Tools,
            Offer::Skill,
        ),
        (
            json!({ "toolExposure": "mixed", "skillAllowlist": [] }),
            Offer::Tools,
            Offer::Tools,
        ),
        (
            json!({ "toolExposure": "skills", "skillAllowlist": null }),
            Offer::Skill,
            Offer::Skill,
        ),
    ] {
        let agent = definition(&more);
        assert_eq!(offer(&agent, "notes"), notes, "{more}");
        assert_eq!(offer(&agent, "web"), web, "{more}");
    }
}

#[test]
fn a_components_skill_is_made_from_its_tools() {
    let agent = definition(&json!({ "toolExposure": "skills" }));
    let components = BTreeMap::from([("notes".to_owned(), vec![tool("notes_add")])]);
    let skills = skills_of(&agent, components, &[]);
    let listings = skills.listings();
    assert_eq!(listings.len(), 1);
    assert_eq!(listings[0].id, "notes");
    assert_eq!(listings[0].skill_path, "/skills/notes/SKILL.md");
    assert_eq!(
        listings[0].cli_path.as_deref(),
        Some("/skills/notes/notes-cli")
    );
    assert_eq!(
        listings[0].description,
        "The tools of `notes`. Adds a note."
    );
    let text: &str = &skills.files()["/skills/notes/SKILL.md"];
    for expected in [
        "name: notes",
        "## notes_add",
        "- `--text` (string, required): The note.",
        "- `--tags` (array)",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    // What is made can be read as any other skill's.
    let read = folder("notes", &[("SKILL.md", text)]).unwrap();
    assert_eq!(read.skill().description, listings[0].description);
    assert_eq!(skills.skills()[0].command(), "notes-cli");
    assert_eq!(skills.skills()[0].tools[0].name, "notes_add");
}

#[test]
fn a_components_skill_says_what_its_tools_do_past_an_abbreviation() {
    let agent = definition(&json!({ "toolExposure": "skills" }));
    let described = ToolDefinition {
        description: "Adds a note, e.g. of a call. Give it a title.".to_owned(),
        ..tool("notes_add")
    };
    let components = BTreeMap::from([("notes".to_owned(), vec![described])]);
    let listings = skills_of(&agent, components, &[]).listings();
    assert_eq!(
        listings[0].description,
        "The tools of `notes`. Adds a note, e.g. of a call."
    );
}

#[test]
fn the_tool_of_skills_names_what_its_commands_do_not_know() {
    let reported = bash().description;
    for gap in ["no modules", "no sed", "`{…}`", "-k -t", "-A -B"] {
        assert!(reported.contains(gap), "{gap}: {reported}");
    }
}

#[test]
fn a_folder_is_a_skill_by_itself_or_in_place_of_what_is_made() {
    let own = folder(
        "notes",
        &[
            (
                "SKILL.md",
                "---\nname: notes\ndescription: >\n  Our way\n  of notes.\nlicense: x\n---\nBody\n",
            ),
            ("references/more.md", "More"),
        ],
    )
    .unwrap();
    let agent = definition(&json!({ "toolExposure": "mixed" }));
    let alone = skills_of(&agent, BTreeMap::new(), std::slice::from_ref(&own));
    assert_eq!(alone.listings()[0].cli_path, None);
    assert_eq!(alone.listings()[0].description, "Our way of notes.");
    assert_eq!(&*alone.files()["/skills/notes/references/more.md"], "More");
    let components = BTreeMap::from([("notes".to_owned(), vec![tool("add")])]);
    let both = skills_of(&agent, components, std::slice::from_ref(&own));
    assert_eq!(both.listings().len(), 1);
    assert!(both.listings()[0].cli_path.is_some());
    assert!(both.files()["/skills/notes/SKILL.md"].contains("Body"));
    let none = definition(&json!({ "toolExposure": "mixed", "skillDenylist": ["notes"] }));
    assert!(!is_listed(&none, "notes"));
    assert!(skills_of(&none, BTreeMap::new(), std::slice::from_ref(&own)).is_empty());
    let tools = definition(&json!({}));
    assert!(skills_of(&tools, BTreeMap::new(), &[own]).is_empty());
}

#[test]
fn a_skill_with_scripts_says_that_they_cannot_run() {
    let head = "---\nname: a\ndescription: \"A: b\"\n---\nBody";
    let with = folder("a", &[("SKILL.md", head), ("scripts/run.py", "print()")]).unwrap();
    let skill = with.skill();
    assert_eq!(skill.description, "A: b");
    assert!(skill.files["SKILL.md"].contains("cannot be run"));
    assert_eq!(&*skill.files["scripts/run.py"], "print()");
    let without = folder("a", &[("SKILL.md", head)]).unwrap();
    assert_eq!(&*without.skill().files["SKILL.md"], head);
}

#[test]
fn a_folder_that_is_no_skill_is_refused_with_the_fix() {
    for (id, files, expected) in [
        ("a", vec![], "there is no SKILL.md"),
        ("a", vec![("SKILL.md", "# A")], "does not begin with a head"),
        (
            "a",
            vec![("SKILL.md", "---\nname: a\n---\n")],
            "has no `description`",
        ),
        (
            "a",
            vec![("SKILL.md", "---\ndescription: x\n---\n")],
            "has no `name`",
        ),
        (
            "a",
            vec![("SKILL.md", "---\nname: b\ndescription: x\n---\n")],
            "`name: b`",
        ),
        (
            "a",
            vec![("SKILL.md", "---\nname: a\ndescription: A: b\n---\n")],
            "is no YAML, in line 3",
        ),
        (
            "a",
            vec![("SKILL.md", "---\nname: a\ndescription: [x]\n---\n")],
            "`description` that is no text",
        ),
        (
            "A_b",
            vec![("SKILL.md", "---\nname: A_b\ndescription: x\n---\n")],
            "of a-z, 0-9 and -",
        ),
    ] {
        let fault = folder(id, &files).unwrap_err().to_string();
        assert!(fault.contains(expected), "{fault}");
    }
    let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1_025));
    assert_eq!(
        folder("a", &[("SKILL.md", &long)]),
        Err(SkillFault::LongDescription(1_025))
    );
    let large = "x".repeat(super::FILE_BYTES_MAX + 1);
    assert_eq!(
        folder("a", &[("SKILL.md", &large)]),
        Err(SkillFault::TooLarge)
    );
}

#[test]
fn frozen_skills_are_read_back_with_all_files_and_tools() {
    let text = "---\nname: guide\ndescription: A guide.\n---\nLook first.\n";
    let guide = folder(
        "guide",
        &[("SKILL.md", text), ("references/a.md", "A\u{0}é")],
    )
    .unwrap();
    let components = BTreeMap::from([("notes".to_owned(), vec![tool("notes_add")])]);
    let agent = definition(&json!({ "toolExposure": "skills" }));
    let skills = skills_of(&agent, components, &[guide]);
    let document = skills.freeze().unwrap();
    assert_eq!(SkillSet::thaw(&document), Some(skills));
    assert_eq!(SkillSet::thaw(b"{}"), None);
    assert_eq!(SkillSet::default().freeze(), None);
}

#[test]
fn skills_are_left_until_a_list_takes_them_away() {
    let text = "---\nname: guide\ndescription: A guide.\n---\nLook first.\n";
    let guide = folder("guide", &[("SKILL.md", text)]).unwrap();
    let components = BTreeMap::from([("notes".to_owned(), vec![tool("notes_add")])]);
    let agent = definition(&json!({ "toolExposure": "skills" }));
    let skills = skills_of(&agent, components, &[guide]);
    for (more, left) in [
        (json!({ "toolExposure": "mixed" }), vec!["guide", "notes"]),
        (
            json!({ "toolExposure": "skills", "skillDenylist": ["g*"] }),
            vec!["notes"],
        ),
        (
            json!({ "toolExposure": "skills", "skillAllowlist": [] }),
            vec![],
        ),
        // The lists have no say where everything is a tool.
        (json!({ "skillDenylist": ["*"] }), vec!["guide", "notes"]),
    ] {
        let now = skills.left_by(&definition(&more));
        let ids: Vec<&str> = now.skills().iter().map(|skill| skill.id.as_str()).collect();
        assert_eq!(ids, left);
        assert_eq!(now.tool("notes_add").is_some(), left.contains(&"notes"));
        assert_eq!(
            now.files().keys().any(|path| path.contains("guide")),
            left.contains(&"guide")
        );
    }
}
