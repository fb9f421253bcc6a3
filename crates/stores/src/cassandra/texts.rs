//! The texts of an executor's statements, and their numbers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Texts and their numbers. All texts are stored, so that future connections can prepare them.
#[derive(Debug, Default)]
pub struct Texts {
    numbers: RefCell<HashMap<Vec<u8>, usize>>,
    all: RefCell<Vec<Rc<str>>>,
    scratch: RefCell<Vec<u8>>,
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
