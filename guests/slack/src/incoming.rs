//! Calls of Slack, as messages for the host: their blocks and marks are read as Markdown.

use crate::{Configuration, sending};
use agent_host_sdk::{
    Attachment, Batch, ConnectorError, Incoming, Moved, Quotation, QuotationKind, Said,
};
use serde_json::Value;

/// Files of one message that are taken.
const ATTACHMENTS_MAX: usize = 10;
/// The words before what a message says since it was edited.
const EDITED: &str = "[edited]";
/// The words for a message that nobody here can read.
const UNREAD: &str = "[a message of a kind that cannot be read here]";
/// The field of a form in which an interaction comes.
const PAYLOAD: &str = "payload";

/// Reads the body of a call: an event, an interaction, a command, or the challenge of a new app.
pub(crate) fn read(configuration: &Configuration, body: &[u8]) -> Result<Batch, ConnectorError> {
    let unread = |what: &str| ConnectorError::Rejected(format!("the call is no {what}"));
    let text = std::str::from_utf8(body).map_err(|_| unread("text"))?;
    if !text.trim_start().starts_with('{') && text.contains('=') {
        let Some(json) = field(text, PAYLOAD) else {
            return Ok(of(commanded(text)));
        };
        let interaction = serde_json::from_str(&json).map_err(|_| unread("interaction"))?;
        return Ok(of(pressed(&interaction)));
    }
    let call: Value = serde_json::from_str(text).map_err(|_| unread("JSON"))?;
    match call["type"].as_str() {
        Some("url_verification") => Ok(Batch {
            answer: call["challenge"].as_str().map(str::to_owned),
            ..Batch::default()
        }),
        Some("event_callback") => Ok(Batch {
            moved: moved(&call["event"]).into_iter().collect(),
            ..of(said(configuration, &call))
        }),
        _ => Ok(Batch::default()),
    }
}

fn of(message: Option<Incoming>) -> Batch {
    Batch {
        messages: message.into_iter().collect(),
        ..Batch::default()
    }
}

/// A channel that has another id, as one has that is shared with another workspace.
fn moved(event: &Value) -> Option<Moved> {
    (event["type"] == "channel_id_changed").then_some(())?;
    Some(Moved {
        from: event["old_channel_id"].as_str()?.to_owned(),
        to: event["new_channel_id"].as_str()?.to_owned(),
        is_group: true,
    })
}

fn said(configuration: &Configuration, call: &Value) -> Option<Incoming> {
    let event = &call["event"];
    if event["type"] == "reaction_added" || event["type"] == "reaction_removed" {
        return of_reaction(event, own_id(call));
    }
    // An edited message tells what it says now within, and where it stands outside.
    let is_edited = event["subtype"] == "message_changed";
    let message = match is_edited {
        true => &event["message"],
        false => event,
    };
    if !is_said(event, message) {
        return None;
    }
    let own_id = own_id(call);
    let place = Place::of(event, message)?;
    let hearing = place.hearing(configuration, event, own_id)?;
    let said = all_said(message, own_id);
    let reported = match is_edited {
        true => Said::Aside(format!("{EDITED} {}", said.text)),
        false if said.is_unread => Said::Aside(UNREAD.to_owned()),
        false => Said::Text(said.text),
    };
    let id = match message["edited"]["ts"].as_str() {
        Some(edited) if is_edited => format!("{}-{}-{edited}", place.channel, place.ts),
        // The same words come as a message and as a mention.
        _ => format!("{}-{}", place.channel, place.ts),
    };
    let sender = message["user"].as_str()?;
    Some(Incoming {
        group: (!place.is_direct).then(|| place.channel.to_owned()),
        quotations: said.quotations,
        attachments: said.files,
        sent_ms: milliseconds(place.ts),
        overheard: hearing == Hearing::Overheard,
        replies_to: own_root(message, own_id),
        ..Incoming::new(id, sender, place.chat(), reported)
    })
}

/// Returns true if a person said it. Messages of bots, joins and the like are left out, and so are
/// edits that change no words: links that are shown with a preview are such.
fn is_said(event: &Value, message: &Value) -> bool {
    let is_plain = match event["subtype"].as_str() {
        // One with files has a subtype, and so has one in a thread that is shown in the channel
        // too.
        None | Some("file_share" | "thread_broadcast" | "me_message") => true,
        Some("message_changed") => {
            message.get("edited").is_some() && message["text"] != event["previous_message"]["text"]
        }
        Some(_) => false,
    };
    let kinds = [Some("message"), Some("app_mention")];
    is_plain && kinds.contains(&event["type"].as_str()) && message.get("bot_id").is_none()
}

/// The way in which a message reaches the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hearing {
    /// It is said to it.
    Meant,
    /// It stands in a thread, in which the bot may take part.
    Overheard,
}

/// The place of a message.
struct Place<'a> {
    channel: &'a str,
    ts: &'a str,
    thread: Option<&'a str>,
    is_direct: bool,
}

impl<'a> Place<'a> {
    fn of(event: &'a Value, message: &'a Value) -> Option<Self> {
        let channel = event["channel"].as_str()?;
        Some(Self {
            channel,
            ts: message["ts"].as_str()?,
            thread: message["thread_ts"].as_str(),
            is_direct: event["channel_type"] == "im" || is_direct(channel),
        })
    }

    /// In a channel the answer stands in the thread of the question.
    fn chat(&self) -> String {
        let thread = self.thread.or((!self.is_direct).then_some(self.ts));
        chat(self.channel, thread)
    }

    /// Returns the way in which a message here reaches the bot; none if it does not.
    fn hearing(
        &self,
        configuration: &Configuration,
        event: &Value,
        own_id: Option<&str>,
    ) -> Option<Hearing> {
        if event["type"] == "app_mention" {
            // Where all messages are read, it comes as one of them too.
            return (!configuration.all_messages).then_some(Hearing::Meant);
        }
        if self.is_direct || configuration.all_messages {
            return Some(Hearing::Meant);
        }
        let message = match event["message"].is_object() {
            true => &event["message"],
            false => event,
        };
        let text = message["text"].as_str().unwrap_or_default();
        let names_it = |id: &str| {
            text.contains(&format!("<@{id}>"))
                || message["parent_user_id"] == id
                || text.contains(&format!("<@{id}|"))
        };
        if own_id.is_some_and(names_it) {
            return Some(Hearing::Meant);
        }
        let follows = self.thread.is_some_and(|thread| thread != self.ts);
        follows.then_some(Hearing::Overheard)
    }
}

/// The words and files of a message.
struct AllSaid {
    text: String,
    is_unread: bool,
    quotations: Vec<Quotation>,
    files: Vec<Attachment>,
}

fn all_said(message: &Value, own_id: Option<&str>) -> AllSaid {
    let text = match message["text"].as_str().filter(|text| !text.is_empty()) {
        Some(text) => words(text, own_id),
        None => words_of_blocks(&message["blocks"]),
    };
    let shared = items(&message["attachments"]);
    let quotations: Vec<Quotation> = shared
        .iter()
        .filter_map(passed_on)
        .chain(replied_to(&message["root"]))
        .collect();
    let files = std::iter::once(message)
        .chain(shared)
        .flat_map(|it| items(&it["files"]))
        .filter_map(file)
        .take(ATTACHMENTS_MAX)
        .collect::<Vec<_>>();
    let own = items(&message["files"]).iter();
    let closed = own.filter(|it| file(it).is_none()).map(closed);
    let text: Vec<String> = std::iter::once(text).chain(closed).collect();
    let text = text.join("\n").trim().to_owned();
    let is_unread = text.is_empty() && quotations.is_empty() && files.is_empty();
    AllSaid {
        text,
        is_unread,
        quotations,
        files,
    }
}

/// A message that was shared, or a preview that stands below one.
fn passed_on(attachment: &Value) -> Option<Quotation> {
    let said = |key: &str| attachment[key].as_str().filter(|text| !text.is_empty());
    let is_shared = attachment["is_share"] == true || attachment["is_msg_unfurl"] == true;
    let in_blocks = ["blocks", "message_blocks"]
        .iter()
        .flat_map(|key| blocks_of(&attachment[*key]))
        .map(words_of_blocks)
        .find(|text| !text.is_empty());
    let text = said("text").map(shown).or(in_blocks);
    let text = text.or_else(|| said("fallback").or(said("from_url")).map(shown))?;
    Some(Quotation {
        kind: match is_shared {
            true => QuotationKind::Forwarded,
            false => QuotationKind::Quoted,
        },
        author: said("author_name")
            .or(said("author_id"))
            .or(said("title"))
            .or(said("service_name"))
            .map(str::to_owned),
        text,
    })
}

/// The blocks of an attachment: a list of them, or one list for each message that is shared.
fn blocks_of(value: &Value) -> Vec<&Value> {
    let shared = items(value).iter().map(|it| &it["message"]["blocks"]);
    std::iter::once(value).chain(shared).collect()
}

/// The beginning of the thread, where the event brings it along.
fn replied_to(root: &Value) -> Option<Quotation> {
    let text = root["text"].as_str().filter(|text| !text.is_empty())?;
    Some(Quotation {
        kind: QuotationKind::Quoted,
        author: root["user"].as_str().map(str::to_owned),
        text: shown(text),
    })
}

/// The id of the beginning of the thread, where the event brings it along and it is the app's.
fn own_root(message: &Value, own_id: Option<&str>) -> Option<String> {
    let root = &message["root"];
    own_id.filter(|own_id| root["user"] == *own_id)?;
    root["ts"].as_str().map(str::to_owned)
}

/// A reaction to a message of the app's. Slack does not tell the thread of that, and the host does.
fn of_reaction(event: &Value, own_id: Option<&str>) -> Option<Incoming> {
    let item = &event["item"];
    let channel = item["channel"].as_str()?;
    let is_direct = is_direct(channel);
    let is_own = match event["item_user"].as_str() {
        Some(author) => own_id == Some(author),
        // In a channel it may be anybody's.
        None => is_direct,
    };
    if !is_own {
        return None;
    }
    let ts = event["event_ts"].as_str()?;
    let reaction = event["reaction"].as_str()?;
    let text = match event["type"] == "reaction_added" {
        true => format!("[reaction :{reaction}:]"),
        false => format!("[reaction :{reaction}: taken back]"),
    };
    let id = format!("reaction-{ts}");
    let sender = event["user"].as_str()?;
    Some(Incoming {
        group: (!is_direct).then(|| channel.to_owned()),
        sent_ms: milliseconds(ts),
        overheard: true,
        replies_to: Some(item["ts"].as_str()?.to_owned()),
        ..Incoming::new(id, sender, channel, Said::Aside(text))
    })
}

fn pressed(interaction: &Value) -> Option<Incoming> {
    let action = interaction["actions"].get(0)?;
    let channel = interaction["channel"]["id"].as_str()?;
    let message = &interaction["message"];
    let ts = action["action_ts"].as_str()?;
    let is_direct = is_direct(channel);
    let value = Said::Button(action["value"].as_str()?.to_owned());
    let id = format!("action-{ts}");
    let sender = interaction["user"]["id"].as_str()?;
    let chat = chat(channel, message["thread_ts"].as_str());
    Some(Incoming {
        sender_name: interaction["user"]["name"].as_str().map(str::to_owned),
        group: (!is_direct).then(|| channel.to_owned()),
        sent_ms: milliseconds(ts),
        acknowledge: sending::handle_of(message, action),
        ..Incoming::new(id, sender, chat, value)
    })
}

/// A command such as `/queue collect`, which Slack takes for none of its own messages.
fn commanded(form: &str) -> Option<Incoming> {
    let command = field(form, "command")?;
    let said = format!("{command} {}", field(form, "text").unwrap_or_default());
    let channel = field(form, "channel_id")?;
    let id = format!("command-{}", field(form, "trigger_id")?);
    let sender = field(form, "user_id")?;
    Some(Incoming {
        sender_name: field(form, "user_name"),
        group: (!is_direct(&channel)).then(|| channel.clone()),
        ..Incoming::new(id, sender, channel, Said::Text(shown(said.trim_end())))
    })
}

/// Returns true for a chat of two.
fn is_direct(channel: &str) -> bool {
    channel.starts_with('D')
}

fn chat(channel: &str, thread: Option<&str>) -> String {
    match thread {
        Some(thread) => format!("{channel}/{thread}"),
        None => channel.to_owned(),
    }
}

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn file(file: &Value) -> Option<Attachment> {
    let text = |key: &str| file[key].as_str();
    Some(Attachment {
        name: text("name").unwrap_or("file").to_owned(),
        media_type: text("mimetype")
            .unwrap_or("application/octet-stream")
            .to_owned(),
        handle: text("url_private")?.to_owned(),
        size: file["size"].as_u64(),
    })
}

/// The words for a file that the app cannot get: it is deleted, or of another workspace.
fn closed(file: &Value) -> String {
    match file["name"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => format!("[file {name}, which cannot be read here]"),
        None => "[file that cannot be read here]".to_owned(),
    }
}

/// The app's own user, as far as the call says.
fn own_id(call: &Value) -> Option<&str> {
    let own = &call["authorizations"][0];
    own["user_id"].as_str().filter(|_| own["is_bot"] == true)
}

/// The words without the mention of the app in front, and without Slack's escapes.
fn words(text: &str, own_id: Option<&str>) -> String {
    let text = text.trim();
    let text = text
        .strip_prefix("<@")
        .and_then(|rest| rest.split_once('>'))
        .filter(|(mentioned, _)| {
            let id = mentioned.split('|').next();
            own_id.is_none_or(|own_id| id == Some(own_id))
        })
        .map_or(text, |(_, rest)| rest.trim_start());
    shown(text)
}

/// The time in a timestamp such as `1700000000.000100`.
fn milliseconds(ts: &str) -> u64 {
    let seconds = ts.split('.').next().unwrap_or_default();
    seconds
        .parse::<u64>()
        .unwrap_or_default()
        .saturating_mul(1_000)
}

/// A field of a form with its escapes undone; none if it is not there, or they are not whole.
fn field(form: &str, name: &str) -> Option<String> {
    let mut fields = form.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = fields.find(|(found, _)| *found == name)?;
    unescaped(value)
}

/// A value of a form with its escapes undone; none if they are not whole.
fn unescaped(form: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(form.len());
    let mut rest = form.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let value = digit()? * 16 + digit()?;
                bytes.push(u8::try_from(value).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Steps by which an item of a list is indented, at most.
const INDENT_MAX: usize = 8;

/// The words of blocks, a line each; empty where none of them says anything.
fn words_of_blocks(blocks: &Value) -> String {
    let said = items(blocks).iter().map(block);
    let said: Vec<String> = said.filter(|text| !text.is_empty()).collect();
    said.join("\n")
}

fn block(block: &Value) -> String {
    match block["type"].as_str().unwrap_or_default() {
        "rich_text" => {
            let parts: Vec<String> = items(&block["elements"]).iter().map(part).collect();
            parts.join("\n")
        }
        "section" | "header" => {
            let texts = std::iter::once(&block["text"]).chain(items(&block["fields"]));
            lines(texts)
        }
        "context" => lines(items(&block["elements"]).iter()),
        "markdown" => block["text"].as_str().unwrap_or_default().to_owned(),
        "image" => format!("[image {}]", block["alt_text"].as_str().unwrap_or_default()),
        "video" => format!("[video {}]", text(&block["title"])),
        _ => String::new(),
    }
}

fn lines<'a>(texts: impl Iterator<Item = &'a Value>) -> String {
    let said: Vec<String> = texts.map(text).filter(|text| !text.is_empty()).collect();
    said.join("\n")
}

/// The words of a text object, which is in Slack's own marks or plain.
fn text(object: &Value) -> String {
    let said = object["text"].as_str().unwrap_or_default();
    match object["type"] == "mrkdwn" {
        true => shown(said),
        false => said.to_owned(),
    }
}

/// The words of a part of a rich text.
fn part(part: &Value) -> String {
    match part["type"].as_str().unwrap_or_default() {
        "rich_text_list" => list(part),
        "rich_text_quote" => format!("> {}", inline(part).replace('\n', "\n> ")),
        "rich_text_preformatted" => format!("```\n{}\n```", inline(part)),
        _ => inline(part),
    }
}

fn list(list: &Value) -> String {
    let indent = list["indent"].as_u64().unwrap_or_default();
    let before = "  ".repeat(usize::try_from(indent).map_or(INDENT_MAX, |it| it.min(INDENT_MAX)));
    let is_ordered = list["style"] == "ordered";
    let first = list["offset"]
        .as_u64()
        .unwrap_or_default()
        .saturating_add(1);
    let said: Vec<String> = (first..)
        .zip(items(&list["elements"]))
        .map(|(number, item)| match is_ordered {
            true => format!("{before}{number}. {}", inline(item)),
            false => format!("{before}- {}", inline(item)),
        })
        .collect();
    said.join("\n")
}

fn inline(part: &Value) -> String {
    items(&part["elements"]).iter().map(element).collect()
}

fn element(element: &Value) -> String {
    let said = |key: &str| element[key].as_str().unwrap_or_default();
    match said("type") {
        "link" => link(said("url"), said("text")),
        // As people and channels without a name are in a text.
        "user" => format!("<@{}>", said("user_id")),
        "channel" => format!("<#{}>", said("channel_id")),
        "usergroup" => format!("@{}", said("usergroup_id")),
        "broadcast" => format!("@{}", said("range")),
        "emoji" => format!(":{}:", said("name")),
        "date" => said("fallback").to_owned(),
        "color" => said("value").to_owned(),
        _ => said("text").to_owned(),
    }
}

/// Words without Slack's escapes. What stands between `<` and `>` names something: a link with
/// other words is one in Markdown, and what has a name of its own is that name.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        shown.push_str(&without_escapes(before));
        let Some((named, after)) = after.split_once('>') else {
            shown.push('<');
            rest = after;
            continue;
        };
        shown.push_str(&reference(named));
        rest = after;
    }
    shown.push_str(&without_escapes(rest));
    shown
}

/// Returns the words of a reference.
fn reference(named: &str) -> String {
    let (target, label) = named.split_once('|').unwrap_or((named, ""));
    let label = without_escapes(label);
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
        (_, label) => link(&without_escapes(target), label),
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

fn without_escapes(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}
