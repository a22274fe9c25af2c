//! Requests and their answers.

use super::{Answer, Page, Site, search};
use serde_json::Value;

const BASE: &str = "http://127.0.0.1:1";

fn site() -> Site {
    let page = |name: &str, text: &str| Page {
        name: name.to_owned(),
        title: format!("On {name}"),
        html: format!("<title>On {name}</title><p>{text}</p>"),
    };
    Site {
        pages: vec![
            page("bread", "Yeast makes <b>bread</b> rise."),
            page("moon", "The Moon makes the tides."),
            page("tides", "Tides come twice a day."),
        ],
    }
}

fn get(target: &str) -> Answer {
    site().answer(&format!("GET {target} HTTP/1.1"), BASE)
}

/// The addresses that a search finds.
fn found(query: &str) -> Vec<String> {
    let answer = get(&format!("/search?q={query}&format=json&pageno=1"));
    assert_eq!(answer.status, "200 OK", "{answer:?}");
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let results = body["results"].as_array().unwrap().iter();
    results
        .map(|result| result["url"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_search_finds_the_pages_with_most_of_the_words_first() {
    let all = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{BASE}/{name}")).collect()
    };
    assert_eq!(found("the+tides+and+the+Moon"), all(&["moon", "tides"]));
    assert_eq!(found("tides%20twice"), all(&["tides", "moon"]));
    assert_eq!(found("bread"), all(&["bread"]));
    assert_eq!(found("what+is+the"), all(&[]));
    assert_eq!(found("%zz"), all(&[]));
}

#[test]
fn a_page_is_served_under_its_name_and_nothing_else_is() {
    let moon = get("/moon");
    assert_eq!(moon.status, "200 OK");
    assert!(moon.body.contains("The Moon makes the tides."), "{moon:?}");
    for (target, status) in [
        ("/", "404 Not Found"),
        ("/moon.html", "404 Not Found"),
        ("/../moon", "404 Not Found"),
        ("moon", "404 Not Found"),
        ("/search?q=moon", "403 Forbidden"),
    ] {
        assert_eq!(get(target).status, status, "{target}");
    }
    let posted = site().answer("POST /moon HTTP/1.1", BASE);
    assert_eq!(posted.status, "405 Method Not Allowed");
    assert_eq!(site().answer("", BASE).status, "405 Method Not Allowed");
}

#[test]
fn parameters_are_decoded_and_nonsense_stays_as_it_is() {
    for (query, expected) in [
        ("q=a+b%20c", Some("a b c")),
        ("x=1&q=%C3%A4", Some("ä")),
        ("q=100%", Some("100%")),
        ("q=%4", Some("%4")),
        ("q=%zz", Some("%zz")),
        ("qq=1", None),
        ("", None),
    ] {
        assert_eq!(
            search::parameter(query, "q").as_deref(),
            expected,
            "{query}"
        );
    }
}

#[test]
fn the_pages_of_the_demo_have_titles_and_are_found() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo/site");
    let site = Site::read(&folder).unwrap();
    assert!(site.pages.len() >= 4, "{:?}", site.pages.len());
    for page in &site.pages {
        assert_ne!(page.title, page.name, "a page without a title");
        let target = format!("GET /search?q={}&format=json HTTP/1.1", page.name);
        let answer = site.answer(&target, BASE);
        assert!(answer.body.contains(&page.title), "{answer:?}");
    }
}
