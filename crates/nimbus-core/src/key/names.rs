//! A namespace and a name in one piece.

/// A namespace and a name in one piece, which is why keys are seldom more than one allocation.
pub(crate) enum Names {
    Short { namespace: u8, len: u8, bytes: [u8; SHORT] },
    Long { namespace: usize, text: Box<str> },
}

/// Most names, with their namespaces, are no longer; and with this, keys are of a size that allocators have.
const SHORT: usize = 61;

// === impl Names ===

impl Names {
    /// Joins names that were checked: they are ASCII.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        let len = namespace.len() + name.len();
        if len > SHORT {
            return Self::Long { namespace: namespace.len(), text: [namespace, name].concat().into() };
        }
        let mut bytes = [0; SHORT];
        bytes[..namespace.len()].copy_from_slice(namespace.as_bytes());
        bytes[namespace.len()..len].copy_from_slice(name.as_bytes());
        Self::Short { namespace: namespace.len() as u8, len: len as u8, bytes }
    }

    pub(crate) fn namespace(&self) -> &str {
        text(self.bytes().0)
    }

    pub(crate) fn name(&self) -> &str {
        text(self.bytes().1)
    }

    /// Both, to be compared: the order of bytes is that of text.
    pub(crate) fn bytes(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Short { namespace, len, bytes } => bytes[..usize::from(*len)].split_at(usize::from(*namespace)),
            Self::Long { namespace, text } => text.as_bytes().split_at(*namespace),
        }
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("names are ASCII")
}
