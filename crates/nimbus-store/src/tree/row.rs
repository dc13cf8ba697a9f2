//! A few things in one piece.

use std::cmp::Ordering;

/// How many things a row has room for: a change copies rows, and counts everything in them as held once more; and a row
/// has something beside its things.
pub(crate) const WIDTH: usize = 16;

/// A few things in one piece, without an allocation of its own.
#[derive(Clone)]
pub(crate) struct Row<T> {
    len: u8,
    cells: [Option<T>; WIDTH],
}

// === impl Row ===

impl<T> Row<T> {
    fn new() -> Self {
        Self { len: 0, cells: [const { None }; WIDTH] }
    }

    pub(crate) fn of(thing: T) -> Self {
        let mut row = Self::new();
        row.insert(0, thing);
        row
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == WIDTH
    }

    pub(crate) fn get(&self, at: usize) -> &T {
        self.cells[at].as_ref().expect("cells below the length are filled")
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> &mut T {
        self.cells[at].as_mut().expect("cells below the length are filled")
    }

    /// Where something is from `first` on, or would be.
    pub(crate) fn search_by(&self, first: usize, order: impl Fn(&T) -> Ordering) -> Result<usize, usize> {
        let (mut from, mut to) = (first, self.len());
        while from < to {
            let middle = usize::midpoint(from, to);
            match order(self.get(middle)) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(from)
    }

    /// Makes room in front of what is there, and fills it. The row must not be full.
    pub(crate) fn insert(&mut self, at: usize, thing: T) {
        let len = self.len();
        self.cells[at..=len].rotate_right(1);
        self.cells[at] = Some(thing);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, at: usize) -> T {
        let len = self.len();
        let thing = self.cells[at].take();
        self.cells[at..len].rotate_left(1);
        self.len -= 1;
        thing.expect("cells below the length are filled")
    }

    /// Takes what is from `at` on.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::new();
        for (to, from) in right.cells.iter_mut().zip(&mut self.cells[at..]) {
            *to = from.take();
        }
        right.len = self.len - at as u8;
        self.len = at as u8;
        right
    }

    /// Adds what is in another row, for which there must be room.
    pub(crate) fn append(&mut self, mut other: Self) {
        let len = self.len();
        for (to, from) in self.cells[len..].iter_mut().zip(&mut other.cells) {
            *to = from.take();
        }
        self.len += other.len;
    }

    /// The same, in front of what is there.
    pub(crate) fn prepend(&mut self, mut other: Self) {
        std::mem::swap(self, &mut other);
        self.append(other);
    }
}
