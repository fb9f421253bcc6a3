//! Parses YAML in bounded memory, and records the line of every node.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle};

/// Maximum length of a document in bytes; longer documents are refused.
const BYTES_MAX: usize = 1 << 20;
/// Maximum depth of nested lists and maps; deeper nesting is refused.
const DEPTH_MAX: usize = 16;
/// Maximum number of nodes. Aliases repeat nodes, so even a short document may have many nodes.
const NODES_MAX: usize = 100_000;

/// An error in a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The number of the line, from 1.
    pub line: usize,
    /// The problem.
    pub message: String,
    /// The next step.
    pub hint: String,
}

impl Mistake {
    /// Creates an error on the given line.
    pub fn new(line: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { line, message: message.into(), hint: hint.into() }
    }
}

/// A node of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The number of the node's first line, from 1.
    pub line: usize,
    /// The content of the node.
    pub content: NodeContent,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeContent {
    /// `null`, `~`, or no text.
    Null,
    /// A string, a number or a Boolean, as the user wrote it.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with their lines and values, in order.
    Map(Vec<(String, usize, Node)>),
}

impl Node {
    /// The name of the content's type, for messages.
    pub fn describe(&self) -> &'static str {
        match self.content {
            NodeContent::Null => "nothing",
            NodeContent::Scalar(_) => "text",
            NodeContent::List(_) => "a list",
            NodeContent::Map(_) => "keys with values",
        }
    }
}

/// Parses a document.
///
/// # Errors
/// The text is not YAML, contains several documents or a duplicate key, or is too large.
pub fn parse(text: &str) -> Result<Node, Mistake> {
    if text.len() > BYTES_MAX {
        let message = format!("the file has {} bytes; at most {BYTES_MAX} are read", text.len());
        return Err(Mistake::new(1, message, "check that the file is a profile"));
    }
    let mut builder = NodeBuilder { anchors: BTreeMap::new(), open: Vec::new(), root: None, nodes: 0 };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let hint = "correct the YAML: indent with spaces, and quote strings with \": \" or \" #\"";
            Mistake::new(error.marker().line(), format!("not YAML: {}", error.info()), hint)
        })?;
        builder.add_event(event, span.start.line())?;
    }
    builder.root.ok_or_else(|| Mistake::new(1, "the file is empty", "write at least keyspace: and table:"))
}

/// A list or a map that has not been closed yet.
struct Open {
    node: Node,
    anchor: usize,
    /// A key whose value has not been read yet.
    key: Option<(String, usize)>,
}

struct NodeBuilder {
    anchors: BTreeMap<usize, (Node, usize)>,
    open: Vec<Open>,
    root: Option<Node>,
    nodes: usize,
}

impl NodeBuilder {
    fn add_event(&mut self, event: Event<'_>, line: usize) -> Result<(), Mistake> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Mistake::new(line, "a second document", "write one profile per file, without \"---\" in it"))
            }
            Event::Scalar(text, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let content = if is_null { NodeContent::Null } else { NodeContent::Scalar(text.into_owned()) };
                self.place_node(Node { line, content }, anchor, 1)
            }
            Event::SequenceStart(anchor, _) => self.begin_node(NodeContent::List(Vec::new()), anchor, line),
            Event::MappingStart(anchor, _) => self.begin_node(NodeContent::Map(Vec::new()), anchor, line),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { node, anchor, .. }) => {
                    let size = count_nodes(&node);
                    self.place_node(node, anchor, 0)?;
                    if let Some((_, nodes)) = self.anchors.get_mut(&anchor) {
                        *nodes = size;
                    }
                    Ok(())
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let unknown = || Mistake::new(line, "an alias without an anchor", "define the anchor before its use");
                let size = self.anchors.get(&anchor).ok_or_else(unknown)?.1;
                // Nodes are counted before an alias is copied, because nested aliases would make the copy's size
                // exponential.
                self.count_nodes(size, line)?;
                let node = self.anchors.get(&anchor).ok_or_else(unknown)?.0.clone();
                self.place_node(node, 0, 0)
            }
            _ => Ok(()),
        }
    }

    fn count_nodes(&mut self, more: usize, line: usize) -> Result<(), Mistake> {
        self.nodes += more;
        if self.nodes > NODES_MAX {
            let message = format!("the file has more than {NODES_MAX} nodes");
            return Err(Mistake::new(line, message, "use fewer aliases"));
        }
        Ok(())
    }

    fn begin_node(&mut self, content: NodeContent, anchor: usize, line: usize) -> Result<(), Mistake> {
        if self.open.len() >= DEPTH_MAX {
            let message = format!("more than {DEPTH_MAX} levels of lists or keys");
            return Err(Mistake::new(line, message, "a profile needs four levels"));
        }
        self.count_nodes(1, line)?;
        self.open.push(Open { node: Node { line, content }, anchor, key: None });
        Ok(())
    }

    fn place_node(&mut self, node: Node, anchor: usize, nodes: usize) -> Result<(), Mistake> {
        let line = node.line;
        self.count_nodes(nodes, line)?;
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), nodes));
        }
        let Some(Open { node: parent, key, .. }) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        match &mut parent.content {
            NodeContent::List(nodes) => nodes.push(node),
            NodeContent::Map(entries) => {
                if let Some((name, at)) = key.take() {
                    entries.push((name, at, node));
                } else {
                    let name = match node.content {
                        NodeContent::Scalar(name) => name,
                        NodeContent::Null => String::new(),
                        _ => return Err(Mistake::new(line, "a key that is not text", "write KEY: VALUE")),
                    };
                    if let Some((_, first, _)) = entries.iter().find(|(other, ..)| *other == name) {
                        let message = format!("{name} is set twice, first on line {first}");
                        return Err(Mistake::new(line, message, "remove one of them"));
                    }
                    *key = Some((name, line));
                }
            }
            NodeContent::Null | NodeContent::Scalar(_) => {}
        }
        Ok(())
    }
}

fn count_nodes(node: &Node) -> usize {
    1 + match &node.content {
        NodeContent::List(nodes) => nodes.iter().map(count_nodes).sum(),
        NodeContent::Map(entries) => entries.iter().map(|(.., node)| count_nodes(node)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_lines() {
        let root = parse("a: 1\nb:\n  - x\n  - y: {z: ~}\n").unwrap();
        let NodeContent::Map(entries) = root.content else { panic!() };
        assert_eq!((entries[0].0.as_str(), entries[0].1), ("a", 1));
        assert_eq!(entries[0].2.content, NodeContent::Scalar("1".to_owned()));
        let NodeContent::List(items) = &entries[1].2.content else { panic!() };
        assert_eq!((items[0].line, items[1].line), (3, 4));
    }

    #[test]
    fn mistakes_have_lines() {
        for (text, line) in
            [("a: 1\nb: 2\na: 3\n", 3), ("a: [1,\n", 2), ("a: *b\n", 1), ("a: 1\n---\nb: 2\n", 2), ("", 1)]
        {
            assert_eq!(parse(text).unwrap_err().line, line, "{text:?}");
        }
    }

    #[test]
    fn hostile_files_are_refused() {
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&format!("{}x{}", "[".repeat(20), "]".repeat(20))).unwrap_err().message.contains("levels"));
        assert!(parse(&"a: ".repeat(1_000_000)).is_err());
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(parse(&bomb).unwrap_err().message.contains("nodes"));
    }
}
