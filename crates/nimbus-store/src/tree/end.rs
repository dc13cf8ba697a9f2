//! The end of a tree, where most things are put.

use std::{iter::Peekable, sync::Arc};

use crate::tree::{Item, Node, Tree, row::Row};

// === impl Tree ===

impl<T: Item> Tree<T> {
    /// Puts these into their places. What comes in order, and after all that is there, goes to the end of the tree by the
    /// leaf.
    pub(crate) fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            self.insert(item);
            let Some(root) = self.root.as_mut().filter(|_| items.peek().is_some()) else { return };
            self.len += root.last_leaf_mut().fill(&mut items);
        }
    }

    /// Whether a place comes after all that are taken.
    pub(super) fn is_beyond(&self, key: T::Key<'_>) -> bool {
        self.root.as_ref().is_none_or(|root| T::order(root.last().key(), key).is_lt())
    }
}

// === impl Node ===

impl<T: Item> Node<T> {
    /// The last item.
    fn last(&self) -> &T {
        let mut node = self;
        loop {
            match node {
                Self::Branch(row) => node = &row.get(row.len() - 1).node,
                Self::Leaf(row) => return row.get(row.len() - 1),
            }
        }
    }

    fn last_leaf_mut(&mut self) -> &mut Row<T> {
        match self {
            Self::Leaf(row) => Arc::make_mut(row),
            Self::Branch(row) => {
                let last = row.len() - 1;
                Arc::make_mut(row).get_mut(last).node.last_leaf_mut()
            }
        }
    }
}

// === impl Row ===

impl<T: Item> Row<T> {
    /// Adds items to this leaf, the last one of the tree, while there is room and each comes after the one before. Returns
    /// how many.
    fn fill(&mut self, items: &mut Peekable<impl Iterator<Item = T>>) -> usize {
        let before = self.len();
        while let Some(last) = self.len().checked_sub(1)
            && !self.is_full()
            && let Some(item) = items.next_if(|item| T::order(self.get(last).key(), item.key()).is_lt())
        {
            self.insert(last + 1, item);
        }
        self.len() - before
    }
}
