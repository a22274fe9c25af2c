//! Words of Slack, as Markdown that says the same: links, and whom and what they name.

/// Words without Slack's escapes. What stands between `<` and `>` names something: a link with
/// other words is one in Markdown, and what has a name of its own is that name.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        shown.push_str(&unescaped(before));
        let Some((named, after)) = after.split_once('>') else {
            shown.push('<');
            rest = after;
            continue;
        };
        shown.push_str(&reference(named));
        rest = after;
    }
    shown.push_str(&unescaped(rest));
    shown
}

/// Returns the words of a reference.
fn reference(named: &str) -> String {
    let (target, label) = named.split_once('|').unwrap_or((named, ""));
    let label = unescaped(label);
    match (target.chars().next(), label.as_str()) {
        // People and channels without a name are left as they are.
        (Some('@' | '#'), "") => format!("<{target}>"),
        (Some('@' | '#'), label) => {
            let sign = target.get(..1).unwrap_or_default();
            format!("{sign}{}", label.trim_start_matches(['@', '#']))
        }
        // Those who are called, such as `<!here>`, and times, which bring their words along.
        (Some('!'), "") => {
            let called = target.trim_start_matches('!').split('^').next_back();
            format!("@{}", called.unwrap_or_default())
        }
        (Some('!'), label) => label.to_owned(),
        (_, label) => link(&unescaped(target), label),
    }
}

/// A link, with its words where it has others than its URL.
pub(crate) fn link(url: &str, label: &str) -> String {
    let is_said = |scheme: &str| url.strip_prefix(scheme) == Some(label);
    let says_itself = ["", "mailto:", "tel:", "http://", "https://"];
    if label.is_empty() || says_itself.into_iter().any(is_said) {
        return match label.is_empty() || label.contains("://") {
            true => url.to_owned(),
            false => label.to_owned(),
        };
    }
    match url.contains(['(', ')', ' ']) {
        true => format!("[{label}](<{url}>)"),
        false => format!("[{label}]({url})"),
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
