//! The tree of a page: all nodes in one list, so that neither going through it nor dropping it goes
//! as deep as the page is nested.

use html5ever::tendril::StrTendril;
use html5ever::{Attribute, QualName, ns};
use std::rc::Rc;

/// A node's place in the list.
pub(super) type NodeId = usize;

/// A page.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// True if the page goes on where the tree ends.
    pub(super) is_cut: bool,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) parent: Option<NodeId>,
    pub(super) previous: Option<NodeId>,
    pub(super) next: Option<NodeId>,
    pub(super) first: Option<NodeId>,
    pub(super) last: Option<NodeId>,
    /// Number of nodes above it; roughly, when it has been moved.
    pub(super) depth: u32,
}

#[derive(Debug)]
pub(super) enum Content {
    /// The document, a comment, or what else is not shown.
    Nothing,
    Element {
        name: Rc<QualName>,
        attributes: Vec<Attribute>,
    },
    Text(StrTendril),
}

/// A step of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Enter(NodeId),
    Leave(NodeId),
}

/// A position among the children of a node, between two neighbours where it has them.
#[derive(Debug, Clone, Copy)]
struct Position {
    parent: NodeId,
    previous: Option<NodeId>,
    next: Option<NodeId>,
}

impl Tree {
    /// The document.
    pub(super) const ROOT: NodeId = 0;

    pub(super) fn new() -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            is_cut: false,
        };
        tree.add(Content::Nothing);
        tree
    }

    /// A node that stands nowhere yet.
    pub(super) fn add(&mut self, content: Content) -> NodeId {
        self.nodes.push(Node {
            content,
            parent: None,
            previous: None,
            next: None,
            first: None,
            last: None,
            depth: 0,
        });
        self.nodes.len() - 1
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The name of an HTML element; of others nothing.
    pub(super) fn name(&self, id: NodeId) -> Option<&str> {
        match &self.node(id)?.content {
            Content::Element { name, .. } if name.ns == ns!(html) => Some(&name.local),
            Content::Element { .. } | Content::Nothing | Content::Text(_) => None,
        }
    }

    /// The name of an element of another language within HTML, such as SVG.
    pub(super) fn foreign_name(&self, id: NodeId) -> Option<&str> {
        match &self.node(id)?.content {
            Content::Element { name, .. } if name.ns != ns!(html) => Some(&name.local),
            Content::Element { .. } | Content::Nothing | Content::Text(_) => None,
        }
    }

    pub(super) fn attribute(&self, id: NodeId, name: &str) -> Option<&str> {
        match &self.node(id)?.content {
            Content::Element { attributes, .. } => attributes
                .iter()
                .find(|attribute| &*attribute.name.local == name)
                .map(|attribute| &*attribute.value),
            Content::Nothing | Content::Text(_) => None,
        }
    }

    /// Everything below a node, in the order of the page.
    pub(super) fn below(&self, root: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = self.node(root).and_then(|node| node.first);
        std::iter::from_fn(move || {
            let current = next?;
            next = self
                .node(current)?
                .first
                .or_else(|| self.after(current, root));
            Some(current)
        })
    }

    /// The first node that comes after a node and all that is in it, and is still below `root`.
    fn after(&self, mut id: NodeId, root: NodeId) -> Option<NodeId> {
        while id != root {
            let node = self.node(id)?;
            if node.next.is_some() {
                return node.next;
            }
            id = node.parent?;
        }
        None
    }

    pub(super) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.node(id).and_then(|node| node.first), |child| {
            self.node(*child)?.next
        })
    }

    /// Goes through a node and everything below it. What the visitor does not want to enter is
    /// neither entered nor left.
    pub(super) fn walk(&self, root: NodeId, mut visit: impl FnMut(Visit) -> bool) {
        let mut at = Visit::Enter(root);
        loop {
            at = match at {
                Visit::Enter(id) => match self.node(id).and_then(|node| node.first) {
                    Some(child) if visit(at) => Visit::Enter(child),
                    None if visit(at) => Visit::Leave(id),
                    _ if id == root => return,
                    _ => self.beside(id),
                },
                Visit::Leave(id) => {
                    visit(at);
                    if id == root {
                        return;
                    }
                    self.beside(id)
                }
            };
        }
    }

    fn beside(&self, id: NodeId) -> Visit {
        let node = self.node(id);
        match node.and_then(|node| node.next) {
            Some(next) => Visit::Enter(next),
            None => Visit::Leave(node.and_then(|node| node.parent).unwrap_or(Self::ROOT)),
        }
    }

    /// The first element of that name below a node.
    pub(super) fn find(&self, root: NodeId, name: &str) -> Option<NodeId> {
        self.below(root).find(|id| self.name(*id) == Some(name))
    }

    /// All text below a node as it stands.
    pub(super) fn text_of(&self, root: NodeId) -> String {
        let mut text = String::new();
        for id in self.below(root) {
            match self.node(id).map(|node| &node.content) {
                Some(Content::Text(piece)) => text.push_str(piece),
                Some(Content::Element { name, .. }) if &*name.local == "br" => text.push('\n'),
                Some(Content::Element { .. } | Content::Nothing) | None => {}
            }
        }
        text
    }

    /// Puts a node at the end of another, away from where it stood.
    pub(super) fn append(&mut self, parent: NodeId, child: NodeId) {
        self.detach(child);
        let Some(node) = self.node(parent) else {
            return;
        };
        let position = Position {
            parent,
            previous: node.last,
            next: None,
        };
        self.place(child, position);
    }

    /// Puts a node before another, away from where it stood.
    pub(super) fn insert_before(&mut self, sibling: NodeId, child: NodeId) {
        self.detach(child);
        let Some(node) = self.node(sibling) else {
            return;
        };
        let Some(parent) = node.parent else { return };
        let position = Position {
            parent,
            previous: node.previous,
            next: Some(sibling),
        };
        self.place(child, position);
    }

    fn place(&mut self, child: NodeId, position: Position) {
        let depth = self.node(position.parent).map_or(0, |node| node.depth) + 1;
        if let Some(node) = self.nodes.get_mut(child) {
            node.parent = Some(position.parent);
            node.previous = position.previous;
            node.next = position.next;
            node.depth = depth;
        }
        self.link(position, Some(child), Some(child));
    }

    /// Tells the neighbours, or the parent where there is none, which node now stands after the
    /// previous one and which before the next one.
    fn link(&mut self, at: Position, after: Option<NodeId>, before: Option<NodeId>) {
        if let Some(node) = self.nodes.get_mut(at.previous.unwrap_or(at.parent)) {
            match at.previous {
                Some(_) => node.next = after,
                None => node.first = after,
            }
        }
        if let Some(node) = self.nodes.get_mut(at.next.unwrap_or(at.parent)) {
            match at.next {
                Some(_) => node.previous = before,
                None => node.last = before,
            }
        }
    }

    /// Takes a node, with what is in it, away from where it stands.
    pub(super) fn detach(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id) else {
            return;
        };
        let previous = node.previous.take();
        let next = node.next.take();
        let Some(parent) = node.parent.take() else {
            return;
        };
        let position = Position {
            parent,
            previous,
            next,
        };
        self.link(position, next, previous);
    }

    /// The text node that new text would become a part of.
    pub(super) fn text_before(
        &mut self,
        parent: NodeId,
        sibling: Option<NodeId>,
    ) -> Option<&mut StrTendril> {
        let before = match sibling {
            Some(sibling) => self.node(sibling)?.previous?,
            None => self.node(parent)?.last?,
        };
        match &mut self.nodes.get_mut(before)?.content {
            Content::Text(text) => Some(text),
            Content::Nothing | Content::Element { .. } => None,
        }
    }
}
