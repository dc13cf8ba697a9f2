//! A namespace and a name in one piece.

use std::cmp::Ordering;

use arrayvec::ArrayString;

/// A namespace and a name in one piece, which is why keys are seldom more than one allocation.
pub(crate) enum Names {
    Short { namespace: u8, text: ArrayString<SHORT> },
    Long { namespace: usize, text: Box<str> },
}

/// Most names, with their namespaces, are no longer; and with this, keys are of a size that allocators have.
const SHORT: usize = 56;

// === impl Names ===

impl Names {
    /// Joins names that were checked: they are ASCII.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        let mut text = ArrayString::new();
        if text.try_push_str(namespace).and_then(|()| text.try_push_str(name)).is_ok() {
            return Self::Short { namespace: namespace.len() as u8, text };
        }
        Self::Long { namespace: namespace.len(), text: [namespace, name].concat().into() }
    }

    pub(crate) fn namespace(&self) -> &str {
        let (namespace, text) = self.text();
        &text[..namespace]
    }

    pub(crate) fn name(&self) -> &str {
        let (namespace, text) = self.text();
        &text[namespace..]
    }

    /// The length of the first, and both.
    pub(crate) fn text(&self) -> (usize, &str) {
        match self {
            Self::Short { namespace, text } => (usize::from(*namespace), text),
            Self::Long { namespace, text } => (*namespace, text),
        }
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Names {}

impl PartialOrd for Names {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By namespace, then by name.
impl Ord for Names {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((one, text), (two, other_text)) = (self.text(), other.text());
        // If the namespaces are of one length, the first byte that differs decides, whichever part it is in.
        if one == two {
            return text.cmp(other_text);
        }
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}
