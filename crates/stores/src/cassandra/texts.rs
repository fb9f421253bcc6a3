//! The texts of an executor's statements, their numbers, and the statements as the nodes prepared them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::rc::Rc;

use super::answer::Prepared;

/// Texts and their numbers. All texts are stored, so that future connections can prepare them.
#[derive(Debug, Default)]
pub struct Texts {
    numbers: RefCell<HashMap<Vec<u8>, usize>>,
    all: RefCell<Vec<Rc<str>>>,
    scratch: RefCell<Vec<u8>>,
    nodes: RefCell<BTreeMap<SocketAddr, Rc<NodeStatements>>>,
}

/// The statements of one executor on one node. A node executes a prepared statement on any connection, so each
/// statement is prepared only once, whatever the number of connections.
#[derive(Debug, Default)]
pub struct NodeStatements {
    all: RefCell<Vec<Option<Rc<Prepared>>>>,
    /// Locked while a connection prepares statements.
    pub preparing: tokio::sync::Mutex<()>,
    /// The node's generation in which all statements were prepared. A node that was restarted may have forgotten them.
    pub generation: Cell<u64>,
}

impl NodeStatements {
    /// The statement with this number, unless it must be prepared.
    #[inline]
    pub fn find(&self, number: usize) -> Option<Rc<Prepared>> {
        self.all.borrow().get(number).cloned().flatten().filter(|prepared| !prepared.stale.get())
    }

    /// Stores a statement.
    pub fn insert(&self, number: usize, prepared: &Rc<Prepared>) {
        let mut all = self.all.borrow_mut();
        let len = all.len().max(number + 1);
        all.resize(len, None);
        all[number] = Some(Rc::clone(prepared));
    }

    /// One more than the highest number of a stored statement; 0 if there is none.
    pub fn count(&self) -> usize {
        self.all.borrow().len()
    }
}

impl Texts {
    /// The number of the statement with this identity. No memory is allocated for a known statement.
    #[inline]
    pub fn number(&self, identity: impl FnOnce(&mut Vec<u8>), text: impl FnOnce() -> String) -> usize {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        identity(&mut scratch);
        let mut numbers = self.numbers.borrow_mut();
        if let Some(number) = numbers.get(scratch.as_slice()) {
            return *number;
        }
        let mut texts = self.all.borrow_mut();
        texts.push(text().into());
        numbers.insert(scratch.clone(), texts.len() - 1);
        texts.len() - 1
    }

    /// The statements on a node.
    pub fn find_statements(&self, address: SocketAddr) -> Rc<NodeStatements> {
        Rc::clone(self.nodes.borrow_mut().entry(address).or_default())
    }

    /// The number of registered texts.
    pub fn len(&self) -> usize {
        self.all.borrow().len()
    }

    /// The text with this number.
    pub fn text(&self, number: usize) -> Rc<str> {
        Rc::clone(&self.all.borrow()[number])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_number() {
        let texts = Texts::default();
        let number = |identity: &[u8]| {
            texts.number(|out| out.extend_from_slice(identity), || String::from_utf8_lossy(identity).into_owned())
        };
        assert_eq!((number(b"a"), number(b"b"), number(b"a")), (0, 1, 0));
        assert_eq!((texts.len(), &*texts.text(1)), (2, "b"));
    }
}
