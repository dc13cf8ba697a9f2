//! Items in their order.

use std::ops::Bound;

use crate::tree::{Child, Item, Node, row::Row};

/// Items in their order.
pub(crate) struct Iter<'a, T: Item> {
    /// The inner nodes on the way to where it is, each with the child that comes next.
    way: Vec<(&'a Row<Child<T>>, usize)>,
    leaf: Option<(&'a Row<T>, usize)>,
}

// === impl Iter ===

impl<'a, T: Item> Iter<'a, T> {
    /// The items of a tree, from a place on.
    pub(crate) fn new(root: Option<&'a Node<T>>, from: Bound<T::Key<'_>>) -> Self {
        let mut iter = Self { way: Vec::new(), leaf: None };
        if let Some(root) = root {
            iter.descend(root, from);
        }
        iter
    }

    fn descend(&mut self, mut node: &'a Node<T>, from: Bound<T::Key<'_>>) {
        loop {
            match node {
                Node::Branch(row) => {
                    let at = match from {
                        Bound::Unbounded => 0,
                        Bound::Included(key) | Bound::Excluded(key) => row.child_of(key),
                    };
                    self.way.push((row, at + 1));
                    node = &row.get(at).node;
                }
                Node::Leaf(row) => {
                    let at = match from {
                        Bound::Unbounded => 0,
                        Bound::Included(key) => row.search(key).unwrap_or_else(|at| at),
                        Bound::Excluded(key) => row.search(key).map_or_else(|at| at, |at| at + 1),
                    };
                    self.leaf = Some((row, at));
                    return;
                }
            }
        }
    }
}

impl<'a, T: Item> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            let (row, at) = self.leaf.as_mut()?;
            if *at < row.len() {
                *at += 1;
                return Some(row.get(*at - 1));
            }
            self.leaf = None;
            while let Some((row, at)) = self.way.last_mut() {
                if *at < row.len() {
                    *at += 1;
                    let node = &row.get(*at - 1).node;
                    self.descend(node, Bound::Unbounded);
                    break;
                }
                self.way.pop();
            }
        }
    }
}
