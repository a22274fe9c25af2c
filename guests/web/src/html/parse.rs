//! The step from source to tree, by html5ever, with a bound on what a page can make it do.
//!
//! The parser goes through the elements that are open for most tags, and compares each attribute of
//! a tag with all before it. Of a page that is made for that, the sandbox would end the call before
//! a word was read. So tags that would nest too deep are passed over, their text is not, a tag of
//! too many attributes loses the rest of them, and a page of too many nodes is cut.

use ego_tree::iter::Edge;
use ego_tree::{NodeId, NodeRef};
use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{
    ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink,
};
use html5ever::{Attribute, LocalName, QualName, TokenizerResult, local_name, ns};
use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

/// Elements within elements.
const DEPTH_MAX: u32 = 256;
/// Nodes of a page.
const NODES_MAX: usize = 150_000;
/// Bytes that are handed to the tokenizer at once.
const CHUNK_BYTES: usize = 256;
/// Words within a tag or a comment after which no more of them are handed over. One attribute is a
/// word at least.
const WORDS_MAX: usize = 256;

/// Elements whose content is not markup. They are not passed over, for their text would be shown.
const RAW: [&str; 9] = [
    "script",
    "style",
    "title",
    "textarea",
    "xmp",
    "iframe",
    "noembed",
    "noframes",
    "plaintext",
];

/// A page. All nodes are in one list, so that neither going through it nor dropping it goes as deep
/// as the page is nested.
pub(super) type Tree = ego_tree::Tree<Content>;
pub(super) type Node<'a> = NodeRef<'a, Content>;

#[derive(Debug)]
pub(super) enum Content {
    /// The document, a comment, or what else is not shown.
    Nothing,
    Element {
        name: QualName,
        attributes: Vec<Attribute>,
        /// Number of nodes above it; roughly, when it has been moved.
        depth: u32,
    },
    Text(StrTendril),
}

impl Content {
    /// The name of an HTML element.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Element { name, .. } if name.ns == ns!(html) => Some(&name.local),
            _ => None,
        }
    }

    /// The name of an element of another language within HTML, such as SVG.
    pub(super) fn foreign_name(&self) -> Option<&str> {
        match self {
            Self::Element { name, .. } if name.ns != ns!(html) => Some(&name.local),
            _ => None,
        }
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let Self::Element { attributes, .. } = self else {
            return None;
        };
        let found = attributes.iter().find(|it| &*it.name.local == name)?;
        Some(&found.value)
    }
}

/// Goes through a node and everything below it. What the visitor does not want to enter is neither
/// entered nor left.
pub(super) fn walk<'a>(root: Node<'a>, mut visit: impl FnMut(Edge<'a, Content>) -> bool) {
    let mut passed_over = None;
    for edge in root.traverse() {
        match (edge, passed_over) {
            (Edge::Close(node), Some(id)) if node.id() == id => passed_over = None,
            (_, Some(_)) => {}
            (Edge::Open(node), None) => passed_over = (!visit(edge)).then(|| node.id()),
            (Edge::Close(_), None) => {
                visit(edge);
            }
        }
    }
}

/// Returns the tree of a page, and true if that is all of it.
pub(super) fn parse(source: String) -> (Tree, bool) {
    let sink = Sink {
        tree: RefCell::new(Tree::new(Content::Nothing)),
        depth: Cell::new(0),
        no_name: RefCell::new(QualName::new(None, ns!(), LocalName::from(""))),
    };
    let opts = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let tokenizer = Tokenizer::new(
        Guard {
            builder: TreeBuilder::new(sink, opts),
            text: RefCell::default(),
            is_full: Cell::new(false),
            is_heard: Cell::new(false),
        },
        TokenizerOpts::default(),
    );
    feed(&tokenizer, &source);
    drop(source);
    tokenizer.end();
    let guard = tokenizer.sink;
    (guard.builder.sink.tree.into_inner(), !guard.is_full.get())
}

/// Hands over all of a page, chunk by chunk.
///
/// Where a tag begins is the tokenizer's secret, but within one it is silent, as within a comment:
/// no token comes until the end. So what is silent for too many words loses the rest of them, up to
/// whatever may be its end. A comment, or a long value in quotes, only becomes shorter by that.
fn feed(tokenizer: &Tokenizer<Guard>, source: &str) {
    let queue = BufferQueue::default();
    let mut left = source;
    let mut silent_words = 0;
    let mut dashes = 0;
    while !left.is_empty() {
        let is_too_long = silent_words >= WORDS_MAX;
        let (chunk, rest) = left.split_at(end_of_chunk(left, is_too_long));
        left = rest;
        let handed = if is_too_long {
            StrTendril::from(ends_in(chunk, &mut dashes))
        } else {
            StrTendril::from_slice(chunk)
        };
        tokenizer.sink.is_heard.set(false);
        queue.push_back(handed);
        while !matches!(tokenizer.feed(&queue), TokenizerResult::Done) {}
        silent_words = if tokenizer.sink.is_heard.get() {
            0
        } else {
            silent_words + chunk.bytes().filter(|byte| ends_a_word(*byte)).count()
        };
    }
}

/// Returns the end of the next chunk. In a tag or comment that is too long, the chunk ends at the
/// next `>`: it may be the end of all of it, and what comes after must not be lost.
fn end_of_chunk(text: &str, is_too_long: bool) -> usize {
    let end = text.floor_char_boundary(CHUNK_BYTES);
    let tag = text.bytes().take(end).position(|byte| byte == b'>');
    tag.filter(|_| is_too_long).map_or(end, |at| at + 1)
}

/// Returns true if an attribute may end here.
fn ends_a_word(byte: u8) -> bool {
    matches!(
        byte,
        b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'"' | b'\''
    )
}

/// Returns the characters of a chunk that may end a value, a tag or a comment. No two attributes
/// can be made of the result, since nothing stands between the characters.
fn ends_in(chunk: &str, dashes: &mut usize) -> String {
    let mut ends = String::new();
    for letter in chunk.chars() {
        match letter {
            '>' if *dashes >= 2 => ends.push_str("-->"),
            '>' | '"' | '\'' => ends.push(letter),
            _ => {}
        }
        *dashes = if letter == '-' { *dashes + 1 } else { 0 };
    }
    ends
}

/// Stands between tokenizer and tree builder.
struct Guard {
    builder: TreeBuilder<NodeId, Sink>,
    /// Text that the tree builder has not seen. The tokenizer hands out some of it letter by
    /// letter.
    text: RefCell<StrTendril>,
    is_full: Cell<bool>,
    /// True if the chunk that was handed over last has led to a token.
    is_heard: Cell<bool>,
}

impl TokenSink for Guard {
    type Handle = NodeId;

    fn process_token(&self, token: Token, line_number: u64) -> TokenSinkResult<NodeId> {
        // A mistake is no token: there may be thousands within one tag.
        self.is_heard
            .set(self.is_heard.get() || !matches!(token, Token::ParseError(_)));
        match &token {
            Token::CharacterTokens(text) => {
                self.text.borrow_mut().push_tendril(text);
                return TokenSinkResult::Continue;
            }
            // Nobody hears of them.
            Token::ParseError(_) => return TokenSinkResult::Continue,
            _ => {}
        }
        let text = self.text.take();
        if !text.is_empty() && !self.is_full.get() {
            // Text never asks the tokenizer for anything.
            let text = Token::CharacterTokens(text);
            let _ = self.builder.process_token(text, line_number);
        }
        let sink = &self.builder.sink;
        if sink.tree.borrow().values().len() >= NODES_MAX {
            self.is_full.set(true);
        }
        let is_dropped = match &token {
            Token::EOFToken => false,
            _ if self.is_full.get() => true,
            Token::TagToken(Tag {
                kind: TagKind::StartTag,
                name,
                ..
            }) => sink.depth.get() >= DEPTH_MAX && !RAW.contains(&&**name),
            _ => false,
        };
        if is_dropped {
            TokenSinkResult::Continue
        } else {
            self.builder.process_token(token, line_number)
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Builds the tree.
struct Sink {
    tree: RefCell<Tree>,
    /// Nodes above the one that was placed last.
    depth: Cell<u32>,
    /// The name of what has none.
    no_name: RefCell<QualName>,
}

impl Sink {
    /// Puts a node, or text, at the end of `parent`, or before a sibling in it.
    fn place(&self, parent: NodeId, before: Option<NodeId>, child: NodeOrText<NodeId>) {
        let mut tree = self.tree.borrow_mut();
        let Some(mut at) = tree.get_mut(before.unwrap_or(parent)) else {
            return;
        };
        let id = match child {
            NodeOrText::AppendNode(id) => id,
            NodeOrText::AppendText(text) => {
                let beside = match before {
                    Some(_) => at.prev_sibling(),
                    None => at.last_child(),
                };
                if let Some(mut beside) = beside
                    && let Content::Text(there) = beside.value()
                {
                    there.push_tendril(&text);
                    return;
                }
                at.tree().orphan(Content::Text(text)).id()
            }
        };
        let mut placed = match before {
            None => at.append_id(id),
            Some(_) if at.parent().is_some() => at.insert_id_before(id),
            Some(_) => return,
        };
        let above = placed.parent().map(|mut parent| match parent.value() {
            Content::Element { depth, .. } => *depth,
            Content::Nothing | Content::Text(_) => 0,
        });
        let below = above.unwrap_or_default() + 1;
        if let Content::Element { depth, .. } = placed.value() {
            *depth = below;
        }
        self.depth.set(below);
    }

    fn add(&self, content: Content) -> NodeId {
        self.tree.borrow_mut().orphan(content).id()
    }
}

impl TreeSink for Sink {
    type Handle = NodeId;
    type Output = ();
    type ElemName<'a> = Ref<'a, QualName>;

    fn finish(self) {}

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        self.tree.borrow().root().id()
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Ref<'a, QualName> {
        let named = Ref::filter_map(self.tree.borrow(), |tree| {
            match tree.get(*target)?.value() {
                Content::Element { name, .. } => Some(name),
                Content::Nothing | Content::Text(_) => None,
            }
        });
        named.unwrap_or_else(|_| self.no_name.borrow())
    }

    fn create_element(
        &self,
        name: QualName,
        attributes: Vec<Attribute>,
        _: ElementFlags,
    ) -> NodeId {
        self.add(Content::Element {
            name,
            attributes,
            depth: 0,
        })
    }

    fn create_comment(&self, _: StrTendril) -> NodeId {
        self.add(Content::Nothing)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> NodeId {
        self.add(Content::Nothing)
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        self.place(*parent, None, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &NodeId,
        previous: &NodeId,
        child: NodeOrText<NodeId>,
    ) {
        let node = self
            .tree
            .borrow()
            .get(*element)
            .and_then(|node| node.parent())
            .is_some();
        self.place(*previous, node.then_some(*element), child);
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// Returns the element itself: the content of a template stands below it, hidden with it.
    fn get_template_contents(&self, target: &NodeId) -> NodeId {
        *target
    }

    fn same_node(&self, x: &NodeId, y: &NodeId) -> bool {
        x == y
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &NodeId, child: NodeOrText<NodeId>) {
        self.place(*sibling, Some(*sibling), child);
    }

    fn add_attrs_if_missing(&self, _: &NodeId, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, target: &NodeId) {
        if let Some(mut node) = self.tree.borrow_mut().get_mut(*target) {
            node.detach();
        }
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        if let Some(mut parent) = self.tree.borrow_mut().get_mut(*new_parent) {
            parent.reparent_from_id_append(*node);
        }
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &NodeId) -> bool {
        let name = self.elem_name(handle);
        name.ns == ns!(mathml) && name.local == local_name!("annotation-xml")
    }
}
