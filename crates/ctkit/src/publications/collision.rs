//! Why children cannot be published.

use nimbus_core::ObjectKey;

/// Why children cannot be published: two things want one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Collision {
    /// One reaction published a name twice.
    #[error("{owner} publishes {child} twice in one reaction (hint: give each child a role of its own)")]
    Twice {
        /// The name.
        child: ObjectKey,
        /// Who published it.
        owner: ObjectKey,
    },
    /// Another owner has published it, or may have, and has not withdrawn it yet.
    #[error("{child} is published by {by} (hint: derive the names of children from their owners)")]
    Taken {
        /// The name.
        child: ObjectKey,
        /// Whose it is.
        by: ObjectKey,
    },
}
