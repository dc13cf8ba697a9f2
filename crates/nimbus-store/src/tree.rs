//! A sorted tree whose clones stay as they were, and which takes little more memory than its items.
//!
//! A change copies the nodes on the way to it, if somebody else has them too. Nodes are as full as can be had cheaply:
//! what comes in order leaves full ones behind, what does not is first passed to a neighbour with room, and two that
//! have become small are joined. Inner nodes keep [marks](Item::Mark) between their children, so that nothing holds on to
//! an item that is gone.

mod end;
mod iter;
mod row;

use std::{cmp::Ordering, fmt, mem, ops::Bound, sync::Arc};

use self::row::{Row, WIDTH};

/// Something that has its place in an order.
pub(crate) trait Item: Clone {
    /// The place, where it lies.
    type Key<'a>: Copy
    where
        Self: 'a;

    /// A place by itself.
    type Mark: Clone;

    /// The place of this item. It never changes.
    fn key(&self) -> Self::Key<'_>;

    /// The same by itself.
    fn mark(&self) -> Self::Mark;

    /// The place that a mark stands for.
    fn place(mark: &Self::Mark) -> Self::Key<'_>;

    /// Compares two places.
    fn order(one: Self::Key<'_>, two: Self::Key<'_>) -> Ordering;
}

/// Items in their order, each place taken once. A clone costs two pointers.
#[derive(Clone)]
pub(crate) struct Tree<T: Item> {
    root: Option<Node<T>>,
    len: usize,
}

/// All children of a node are of one sort.
enum Node<T: Item> {
    Leaf(Arc<Row<T>>),
    Branch(Arc<Row<Child<T>>>),
}

#[derive(Clone)]
struct Child<T: Item> {
    /// Not after any item in it, and after all that come before it. Of a first child, nobody asks.
    mark: T::Mark,
    node: Node<T>,
}

/// What came of an insertion.
enum Inserted<T: Item> {
    /// It is there, in place of this one.
    Done(Option<T>),
    /// It belongs there in this leaf, which has no room.
    Full(usize, T),
    /// It is there, and this has to stand after the node.
    Split(Child<T>),
}

// === impl Tree ===

impl<T: Item> Tree<T> {
    pub(crate) const fn new() -> Self {
        Self { root: None, len: 0 }
    }

    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The item in that place.
    pub(crate) fn get(&self, key: T::Key<'_>) -> Option<&T> {
        // Most things are put in in their order, by somebody who has looked whether they are there.
        if self.is_beyond(key) {
            return None;
        }
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Branch(row) => node = &row.get(row.child_of(key)).node,
                Node::Leaf(row) => return Some(row.get(row.search(key).ok()?)),
            }
        }
    }

    /// Puts an item into its place. Returns the one that was there.
    pub(crate) fn insert(&mut self, item: T) -> Option<T> {
        let Some(root) = &mut self.root else {
            self.root = Some(Node::Leaf(Arc::new(Row::of(item))));
            self.len = 1;
            return None;
        };
        let right = match root.insert(item) {
            Inserted::Done(old) => {
                self.len += usize::from(old.is_none());
                return old;
            }
            Inserted::Full(at, item) => root.split(at, item),
            Inserted::Split(right) => right,
        };
        self.len += 1;
        // Nobody asks for the mark of a first child, so that any will do.
        let mut row = Row::of(Child { mark: right.mark.clone(), node: root.clone() });
        row.insert(1, right);
        *root = Node::Branch(Arc::new(row));
        None
    }

    /// Takes the item out of that place.
    pub(crate) fn remove(&mut self, key: T::Key<'_>) -> Option<T> {
        let root = self.root.as_mut()?;
        let item = root.remove(key)?;
        self.len -= 1;
        while let Node::Branch(row) = root
            && row.len() == 1
        {
            *root = row.get(0).node.clone();
        }
        if self.len == 0 {
            self.root = None;
        }
        Some(item)
    }

    /// All items in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        iter::Iter::new(self.root.as_ref(), Bound::Unbounded)
    }

    /// The items from a place on, in their order.
    pub(crate) fn from(&self, from: Bound<T::Key<'_>>) -> impl Iterator<Item = &T> + use<'_, T> {
        iter::Iter::new(self.root.as_ref(), from)
    }
}

impl<T: Item> FromIterator<T> for Tree<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut tree = Self::new();
        tree.extend(items);
        tree
    }
}

impl<T: Item + fmt::Debug> fmt::Debug for Tree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

// === impl Node ===

impl<T: Item> Node<T> {
    fn len(&self) -> usize {
        match self {
            Self::Leaf(row) => row.len(),
            Self::Branch(row) => row.len(),
        }
    }

    fn insert(&mut self, item: T) -> Inserted<T> {
        match self {
            Self::Leaf(row) => match row.search_back(item.key()) {
                Ok(at) => Inserted::Done(Some(mem::replace(Arc::make_mut(row).get_mut(at), item))),
                Err(at) if row.is_full() => Inserted::Full(at, item),
                Err(at) => {
                    Arc::make_mut(row).insert(at, item);
                    Inserted::Done(None)
                }
            },
            Self::Branch(row) => {
                let row = Arc::make_mut(row);
                let at = row.child_of_new(item.key());
                match row.get_mut(at).node.insert(item) {
                    Inserted::Done(old) => Inserted::Done(old),
                    Inserted::Split(right) => row.adopt(at + 1, right),
                    Inserted::Full(place, item) => match row.pass_on(at, place, item) {
                        None => Inserted::Done(None),
                        Some(item) => {
                            let right = row.get_mut(at).node.split(place, item);
                            row.adopt(at + 1, right)
                        }
                    },
                }
            }
        }
    }

    /// Divides a leaf that is full, and puts an item where it belongs. Returns what stands after it then.
    fn split(&mut self, at: usize, item: T) -> Child<T> {
        let Self::Leaf(row) = self else { unreachable!("only leaves are full of items") };
        // What comes in order leaves full leaves behind, in both directions.
        let from = match at {
            0 => 0,
            WIDTH => WIDTH,
            _ => WIDTH / 2,
        };
        let row = Arc::make_mut(row);
        let mut right = row.split_off(from);
        if at < from || from == 0 {
            row.insert(at, item);
        } else {
            right.insert(at - from, item);
        }
        Child { mark: right.get(0).mark(), node: Self::Leaf(Arc::new(right)) }
    }

    fn remove(&mut self, key: T::Key<'_>) -> Option<T> {
        match self {
            Self::Leaf(row) => {
                let at = row.search(key).ok()?;
                Some(Arc::make_mut(row).remove(at))
            }
            Self::Branch(row) => {
                let row = Arc::make_mut(row);
                let at = row.child_of(key);
                let item = row.get_mut(at).node.remove(key)?;
                row.tidy(at);
                Some(item)
            }
        }
    }

    fn leaf_mut(&mut self) -> &mut Row<T> {
        match self {
            Self::Leaf(row) => Arc::make_mut(row),
            Self::Branch(_) => unreachable!("the neighbours of leaves are leaves"),
        }
    }
}

impl<T: Item> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(row) => Self::Leaf(row.clone()),
            Self::Branch(row) => Self::Branch(row.clone()),
        }
    }
}

// === impl Row ===

impl<T: Item> Row<T> {
    /// Where the item of that place is, or would be.
    fn search(&self, key: T::Key<'_>) -> Result<usize, usize> {
        self.search_by(0, |item| T::order(item.key(), key))
    }

    /// The same, sooner if it comes after all that is there: most things are put in in their order.
    fn search_back(&self, key: T::Key<'_>) -> Result<usize, usize> {
        match self.len().checked_sub(1) {
            Some(last) if T::order(self.get(last).key(), key).is_lt() => Err(last + 1),
            _ => self.search(key),
        }
    }
}

impl<T: Item> Row<Child<T>> {
    /// The child that has that place.
    fn child_of(&self, key: T::Key<'_>) -> usize {
        match self.search_by(1, |child| T::order(T::place(&child.mark), key)) {
            Ok(at) => at,
            Err(after) => after - 1,
        }
    }

    /// The same, sooner if it is the last.
    fn child_of_new(&self, key: T::Key<'_>) -> usize {
        match self.len() - 1 {
            last @ 1.. if T::order(T::place(&self.get(last).mark), key).is_le() => last,
            _ => self.child_of(key),
        }
    }

    /// Adds a child, and divides the node if it must.
    fn adopt(&mut self, at: usize, child: Child<T>) -> Inserted<T> {
        if !self.is_full() {
            self.insert(at, child);
            return Inserted::Done(None);
        }
        let right = if at == WIDTH {
            Row::of(child)
        } else {
            let mut right = self.split_off(WIDTH / 2);
            match at.checked_sub(WIDTH / 2) {
                Some(at @ 1..) => right.insert(at, child),
                _ => self.insert(at, child),
            }
            right
        };
        Inserted::Split(Child { mark: right.get(0).mark.clone(), node: Node::Branch(Arc::new(right)) })
    }

    /// Puts an item into a leaf that is full, if a neighbour has room for some of the others. Else gives it back.
    fn pass_on(&mut self, at: usize, place: usize, item: T) -> Option<T> {
        // Some room stays in both, so that the next one does not have to move them again.
        let passed = |len: usize| Some((WIDTH - len) / 2).filter(|passed| *passed > 0);
        let after = at + 1;
        if after < self.len()
            && let Some(passed) = passed(self.get(after).node.len())
        {
            let leaf = self.get_mut(at).node.leaf_mut();
            let mut tail = leaf.split_off(WIDTH - passed);
            if place <= leaf.len() {
                leaf.insert(place, item);
            } else {
                tail.insert(place - leaf.len(), item);
            }
            let mark = tail.get(0).mark();
            let right = self.get_mut(after);
            right.mark = mark;
            right.node.leaf_mut().prepend(tail);
            return None;
        }
        if let Some(before) = at.checked_sub(1)
            && let Some(passed) = passed(self.get(before).node.len())
        {
            let child = self.get_mut(at);
            let leaf = child.node.leaf_mut();
            let mut head = leaf.split_off(passed);
            mem::swap(leaf, &mut head);
            if place >= passed {
                leaf.insert(place - passed, item);
            } else {
                head.insert(place, item);
            }
            child.mark = leaf.get(0).mark();
            self.get_mut(before).node.leaf_mut().append(head);
            return None;
        }
        Some(item)
    }

    /// Joins a child that has become small with a neighbour, or drops it if nothing is left of it.
    fn tidy(&mut self, at: usize) {
        let len = self.get(at).node.len();
        if len == 0 {
            self.remove(at);
        } else if len <= WIDTH / 2 {
            let fits = |other: usize| other < self.len() && self.get(other).node.len() + len <= WIDTH;
            if fits(at + 1) {
                self.join(at);
            } else if at > 0 && fits(at - 1) {
                self.join(at - 1);
            }
        }
    }

    /// Joins a child with the one after it.
    fn join(&mut self, at: usize) {
        let Child { mark, node: right } = self.remove(at + 1);
        match (&mut self.get_mut(at).node, right) {
            (Node::Leaf(left), Node::Leaf(right)) => Arc::make_mut(left).append(Arc::unwrap_or_clone(right)),
            (Node::Branch(left), Node::Branch(right)) => {
                let mut right = Arc::unwrap_or_clone(right);
                right.get_mut(0).mark = mark;
                Arc::make_mut(left).append(right);
            }
            _ => unreachable!("all children of a node are of one sort"),
        }
    }
}

#[cfg(test)]
mod tests;
