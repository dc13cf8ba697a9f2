//! A list that seldom has more than one thing in it.

/// A list that seldom has more than one thing in it, which takes no allocation.
#[derive(Debug, Clone, Default)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Vec<T>),
}

// === impl Few ===

impl<T> Few<T> {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        match self {
            Self::None => [].iter(),
            Self::One(one) => std::slice::from_ref(one).iter(),
            Self::Many(many) => many.iter(),
        }
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        match self {
            Self::None => [].iter_mut(),
            Self::One(one) => std::slice::from_mut(one).iter_mut(),
            Self::Many(many) => many.iter_mut(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.iter().len()
    }

    pub(crate) fn push(&mut self, one: T) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(one),
            Self::One(first) => Self::Many(vec![first, one]),
            Self::Many(mut many) => {
                many.push(one);
                Self::Many(many)
            }
        };
    }

    /// Hands over each of them, without an iterator around it.
    pub(crate) fn for_each(self, mut each: impl FnMut(T)) {
        match self {
            Self::None => {}
            Self::One(one) => each(one),
            Self::Many(many) => many.into_iter().for_each(each),
        }
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        match self {
            Self::None => {}
            Self::One(one) if keep(one) => {}
            Self::One(_) => *self = Self::None,
            Self::Many(many) => many.retain(keep),
        }
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, all: I) {
        all.into_iter().for_each(|one| self.push(one));
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        let mut few = Self::None;
        few.extend(all);
        few
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self {
            Self::None => (None, Vec::new()),
            Self::One(one) => (Some(one), Vec::new()),
            Self::Many(many) => (None, many),
        };
        one.into_iter().chain(many)
    }
}
