//! The step from source to tree, by html5ever, with a bound on what a page can make it do.
//!
//! The parser goes through the elements that are open for most tags, and may make many nodes of
//! one. A page that is nested without end would cost time by the square of its length. So tags that
//! would nest too deep are passed over, their text is not, and a page of too many nodes is cut.
//! The cost of a single tag is bounded where the page is handed over.

use super::feed::feed;
use super::tree::{Content, NodeId, Tree};
use html5ever::buffer_queue::BufferQueue;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{
    ElementFlags, NodeOrText, QuirksMode, TreeBuilder, TreeBuilderOpts, TreeSink,
};
use html5ever::{Attribute, ExpandedName, LocalName, QualName, TokenizerResult, local_name, ns};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Elements within elements.
pub(super) const DEPTH_MAX: u32 = 256;
/// Nodes of a page.
pub(super) const NODES_MAX: usize = 150_000;

/// The attributes that are read.
const ATTRIBUTES: [&str; 14] = [
    "href",
    "alt",
    "hidden",
    "style",
    "aria-hidden",
    "role",
    "start",
    "class",
    "open",
    "reversed",
    "value",
    "type",
    "http-equiv",
    "content",
];
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
/// Elements whose text is not read.
const UNREAD: [&str; 6] = [
    "script", "style", "textarea", "iframe", "noembed", "noframes",
];

pub(super) fn parse(source: String) -> Tree {
    let sink = Sink {
        tree: RefCell::new(Tree::new()),
        depth: Cell::new(0),
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
    let queue = BufferQueue::default();
    feed(&source, |piece| {
        tokenizer.sink.is_heard.set(false);
        queue.push_back(piece);
        while !matches!(tokenizer.feed(&queue), TokenizerResult::Done) {}
        tokenizer.sink.is_heard.get()
    });
    drop(source);
    tokenizer.end();
    let guard = tokenizer.sink;
    let mut tree = guard.builder.sink.tree.into_inner();
    tree.is_cut = guard.is_full.get();
    tree
}

/// Stands between tokenizer and tree builder.
struct Guard {
    builder: TreeBuilder<Handle, Sink>,
    /// Text that the tree builder has not seen. The tokenizer hands out some of it letter by
    /// letter.
    text: RefCell<StrTendril>,
    is_full: Cell<bool>,
    /// True if the piece that was handed over last has led to a token.
    is_heard: Cell<bool>,
}

impl TokenSink for Guard {
    type Handle = Handle;

    fn process_token(&self, token: Token, line_number: u64) -> TokenSinkResult<Handle> {
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
            Token::TagToken(_)
            | Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken => {}
        }
        let text = self.text.take();
        if !text.is_empty() && !self.is_full.get() {
            // Text never asks the tokenizer for anything.
            let text = Token::CharacterTokens(text);
            let _ = self.builder.process_token(text, line_number);
        }
        let sink = &self.builder.sink;
        if sink.tree.borrow().nodes.len() >= NODES_MAX {
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

/// A node as the tree builder holds it.
#[derive(Debug, Clone)]
struct Handle {
    id: NodeId,
    name: Rc<QualName>,
    /// The node that gets the content of a `template` in its place.
    contents: Option<NodeId>,
}

struct Sink {
    tree: RefCell<Tree>,
    /// The depth of the node that was placed last.
    depth: Cell<u32>,
}

impl Sink {
    /// A node that is not shown.
    fn nothing(&self) -> Handle {
        nameless(self.tree.borrow_mut().add(Content::Nothing))
    }

    /// Puts a node, or text, at the end of `parent`, or before a sibling in it.
    fn place(&self, parent: &Handle, sibling: Option<&Handle>, child: NodeOrText<Handle>) {
        let mut tree = self.tree.borrow_mut();
        let before = sibling.map(|sibling| sibling.id);
        let id = match child {
            NodeOrText::AppendNode(node) => node.id,
            NodeOrText::AppendText(_) if UNREAD.contains(&&*parent.name.local) => return,
            NodeOrText::AppendText(text) => match tree.text_before(parent.id, before) {
                Some(there) => {
                    there.push_tendril(&text);
                    return;
                }
                None => tree.add(Content::Text(text)),
            },
        };
        match before {
            Some(sibling) => tree.insert_before(sibling, id),
            None => tree.append(parent.id, id),
        }
        self.depth.set(tree.node(id).map_or(0, |node| node.depth));
    }
}

/// A node that is no element.
fn nameless(id: NodeId) -> Handle {
    Handle {
        id,
        name: Rc::new(QualName::new(None, ns!(), LocalName::from(""))),
        contents: None,
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        nameless(Tree::ROOT)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(
        &self,
        name: QualName,
        mut attributes: Vec<Attribute>,
        flags: ElementFlags,
    ) -> Handle {
        attributes.retain(|attribute| ATTRIBUTES.contains(&&*attribute.name.local));
        attributes.shrink_to_fit();
        let name = Rc::new(name);
        let mut tree = self.tree.borrow_mut();
        Handle {
            id: tree.add(Content::Element {
                name: Rc::clone(&name),
                attributes,
            }),
            name,
            contents: flags.template.then(|| tree.add(Content::Nothing)),
        }
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.nothing()
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.nothing()
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.place(parent, None, child);
    }

    fn append_based_on_parent_node(
        &self,
        element: &Handle,
        previous: &Handle,
        child: NodeOrText<Handle>,
    ) {
        let parent = self
            .tree
            .borrow()
            .node(element.id)
            .and_then(|node| node.parent);
        if parent.is_some() {
            self.append_before_sibling(element, child)
        } else {
            self.append(previous, child)
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &Handle) -> Handle {
        nameless(target.contents.unwrap_or(target.id))
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        x.id == y.id
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        // Its parent is a table or what holds one, whose text is read.
        self.place(&self.get_document(), Some(sibling), child);
    }

    fn add_attrs_if_missing(&self, _: &Handle, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, target: &Handle) {
        self.tree.borrow_mut().detach(target.id);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        let mut tree = self.tree.borrow_mut();
        while let Some(child) = tree.node(node.id).and_then(|node| node.first) {
            tree.append(new_parent.id, child);
        }
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &Handle) -> bool {
        handle.name.ns == ns!(mathml) && handle.name.local == local_name!("annotation-xml")
    }
}
