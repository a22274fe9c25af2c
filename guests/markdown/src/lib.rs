//! Markdown (CommonMark) as messaging services show it: Telegram's HTML, WhatsApp's and Slack's
//! marks. What a service cannot show stays readable as text.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// The way in which a service marks text.
struct Dialect {
    strong: (&'static str, &'static str),
    emphasis: (&'static str, &'static str),
    strike: (&'static str, &'static str),
    code: (&'static str, &'static str),
    block: (&'static str, &'static str),
    quote: Quote,
    escape: fn(&str) -> String,
    link: fn(&str, &str) -> String,
}

/// The way in which a service shows a quotation.
enum Quote {
    /// Between these marks.
    Between(&'static str, &'static str),
    /// With this before each line.
    Before(&'static str),
}

/// WhatsApp's marks.
const WHATSAPP: Dialect = Dialect {
    strong: ("*", "*"),
    emphasis: ("_", "_"),
    strike: ("~", "~"),
    code: ("`", "`"),
    block: ("```\n", "\n```"),
    quote: Quote::Before("> "),
    escape: str::to_owned,
    link: named_link,
};

/// The text in Telegram's HTML (Bot API, `parse_mode: HTML`).
#[must_use]
pub fn telegram(text: &str) -> String {
    written(
        text,
        &Dialect {
            strong: ("<b>", "</b>"),
            emphasis: ("<i>", "</i>"),
            strike: ("<s>", "</s>"),
            code: ("<code>", "</code>"),
            block: ("<pre>", "</pre>"),
            quote: Quote::Between("<blockquote>", "</blockquote>"),
            escape: escape_html,
            link: |label, url| {
                if is_web(url) {
                    format!(
                        "<a href=\"{}\">{label}</a>",
                        escape_html(url).replace('"', "&quot;")
                    )
                } else {
                    format!("{label} ({})", escape_html(url))
                }
            },
        },
    )
}

/// The text with WhatsApp's marks.
#[must_use]
pub fn whatsapp(text: &str) -> String {
    written(text, &WHATSAPP)
}

/// The text with Slack's marks (`mrkdwn`).
#[must_use]
pub fn slack(text: &str) -> String {
    written(
        text,
        &Dialect {
            escape: escape_html,
            link: |label, url| {
                let plain = !url.contains(['|', '<', '>', ' ']);
                if is_web(url) && plain {
                    format!("<{}|{}>", escape_html(url), label.replace('|', "/"))
                } else {
                    format!("{label} ({})", escape_html(url))
                }
            },
            ..WHATSAPP
        },
    )
}

/// The text without any marks.
#[must_use]
pub fn plain(text: &str) -> String {
    written(
        text,
        &Dialect {
            strong: ("", ""),
            emphasis: ("", ""),
            strike: ("", ""),
            code: ("", ""),
            block: ("", ""),
            ..WHATSAPP
        },
    )
}

fn named_link(label: &str, url: &str) -> String {
    if label == url {
        url.to_owned()
    } else {
        format!("{label} ({url})")
    }
}

/// Escapes what both Telegram's HTML and Slack's marks read as their own.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn is_web(url: &str) -> bool {
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
}

fn written(text: &str, dialect: &Dialect) -> String {
    let mut writer = Writer {
        dialect,
        out: vec![Frame::default()],
        lists: Vec::new(),
        in_block: false,
        cells: 0,
    };
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES;
    for event in Parser::new_ext(text, options) {
        writer.take(event);
    }
    writer.finish()
}

/// Text that is collected for something around it.
#[derive(Default)]
struct Frame {
    text: String,
    /// The target of a link or picture.
    url: Option<String>,
}

struct Writer<'a> {
    dialect: &'a Dialect,
    out: Vec<Frame>,
    /// The numbers of the items that are next in the lists around; none where they have bullets.
    lists: Vec<Option<u64>>,
    in_block: bool,
    /// Cells of the row so far.
    cells: usize,
}

impl Writer<'_> {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&(self.dialect.escape)(&text));
            }
            Event::Code(text) => {
                let (open, close) = self.dialect.code;
                self.push(&format!("{open}{}{close}", (self.dialect.escape)(&text)));
            }
            // Tags of HTML are no marks here: they are shown.
            Event::Html(text) | Event::InlineHtml(text) => self.push(&(self.dialect.escape)(&text)),
            Event::SoftBreak | Event::HardBreak => self.push("\n"),
            Event::Rule => {
                self.paragraph();
                self.push("———");
            }
            Event::FootnoteReference(name) => self.push(&(self.dialect.escape)(&name)),
            Event::TaskListMarker(done) => self.push(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph if self.lists.is_empty() => self.paragraph(),
            Tag::Heading { .. } => {
                self.paragraph();
                self.push(self.dialect.strong.0);
            }
            Tag::BlockQuote(_) => {
                self.paragraph();
                self.out.push(Frame::default());
            }
            Tag::CodeBlock(kind) => {
                self.paragraph();
                self.in_block = true;
                // Which language it is, no service shows everywhere.
                let (CodeBlockKind::Fenced(_) | CodeBlockKind::Indented) = kind;
                self.push(self.dialect.block.0);
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.paragraph();
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Strong => self.push(self.dialect.strong.0),
            Tag::Emphasis => self.push(self.dialect.emphasis.0),
            Tag::Strikethrough => self.push(self.dialect.strike.0),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.out.push(Frame {
                text: String::new(),
                url: Some(dest_url.to_string()),
            }),
            Tag::Table(_) => self.paragraph(),
            Tag::TableHead | Tag::TableRow => {
                self.line();
                self.cells = 0;
            }
            Tag::TableCell => {
                if self.cells > 0 {
                    self.push(" | ");
                }
                self.cells += 1;
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) | TagEnd::Strong => self.push(self.dialect.strong.1),
            TagEnd::Emphasis => self.push(self.dialect.emphasis.1),
            TagEnd::Strikethrough => self.push(self.dialect.strike.1),
            TagEnd::CodeBlock => {
                self.in_block = false;
                if let Some(frame) = self.out.last_mut() {
                    let kept = frame.text.trim_end_matches('\n').len();
                    frame.text.truncate(kept);
                }
                self.push(self.dialect.block.1);
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::BlockQuote(_) => self.end_quote(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    fn item(&mut self) {
        self.line();
        let depth = self.lists.len().saturating_sub(1);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        self.push(&format!("{}{mark}", "   ".repeat(depth)));
    }

    fn end_quote(&mut self) {
        let Some(frame) = self.out.pop() else { return };
        let text = frame.text.trim().to_owned();
        match self.dialect.quote {
            Quote::Between(open, close) => self.push(&format!("{open}{text}{close}")),
            Quote::Before(mark) => {
                let lines: Vec<String> = text.lines().map(|line| format!("{mark}{line}")).collect();
                self.push(&lines.join("\n"));
            }
        }
    }

    fn end_link(&mut self) {
        let Some(frame) = self.out.pop() else { return };
        let url = frame.url.unwrap_or_default();
        let label = if frame.text.is_empty() {
            (self.dialect.escape)(&url)
        } else {
            frame.text
        };
        let link = (self.dialect.link)(&label, &url);
        self.push(&link);
    }

    fn push(&mut self, text: &str) {
        if let Some(frame) = self.out.last_mut() {
            frame.text.push_str(text);
        }
    }

    /// Begins a paragraph: an empty line stands before it.
    fn paragraph(&mut self) {
        self.begin("\n\n");
    }

    /// Begins a line.
    fn line(&mut self) {
        self.begin("\n");
    }

    fn begin(&mut self, gap: &str) {
        if let Some(frame) = self.out.last_mut()
            && !frame.text.is_empty()
        {
            let kept = frame.text.trim_end_matches('\n').len();
            frame.text.truncate(kept);
            frame.text.push_str(gap);
        }
    }

    fn finish(mut self) -> String {
        let frame = self.out.pop().unwrap_or_default();
        frame.text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests;
