//! Things by stream. There is mostly one, and rarely more than a few.

/// Things by stream, in the order of the streams' numbers, which only rise.
#[derive(Debug)]
pub(crate) struct Streams<T>(Vec<(u32, T)>);

// === impl Streams ===

impl<T> Default for Streams<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Streams<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, stream: u32) -> Option<&T> {
        self.at(stream).map(|at| &self.0[at].1)
    }

    pub(crate) fn get_mut(&mut self, stream: u32) -> Option<&mut T> {
        self.at(stream).map(|at| &mut self.0[at].1)
    }

    /// Adds a stream, whose number is higher than all others.
    pub(crate) fn push(&mut self, stream: u32, thing: T) {
        debug_assert!(self.0.last().is_none_or(|(last, _)| *last < stream), "numbers of streams rise");
        if self.0.is_empty() {
            // Most have one for a long time.
            self.0.reserve_exact(1);
        }
        self.0.push((stream, thing));
    }

    pub(crate) fn remove(&mut self, stream: u32) -> Option<T> {
        let removed = self.at(stream).map(|at| self.0.remove(at).1);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        removed
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, thing)| thing)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.0.iter().map(|(stream, _)| *stream).collect()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u32, T)> {
        std::mem::take(&mut self.0).into_iter()
    }

    fn at(&self, stream: u32) -> Option<usize> {
        match &*self.0 {
            [(first, _)] => (*first == stream).then_some(0),
            all => all.binary_search_by_key(&stream, |(each, _)| *each).ok(),
        }
    }
}
