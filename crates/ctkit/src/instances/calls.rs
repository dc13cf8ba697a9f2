//! Calls that have not been answered.

use std::{collections::HashMap, future::Future};

use tokio::task::{Id, JoinSet};

use crate::{
    instances::call::{Answer, Topic},
    source::CommitError,
};

/// Calls that have not been answered. They end when it is dropped.
///
/// There is one for each topic at most, so there are not many.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    tasks: JoinSet<Result<Answer, CommitError>>,
    topics: HashMap<Id, Topic>,
}

// === impl Calls ===

impl Calls {
    pub(crate) fn spawn(
        &mut self,
        topic: Topic,
        call: impl Future<Output = Result<Answer, CommitError>> + Send + 'static,
    ) {
        let task = self.tasks.spawn(call);
        self.topics.insert(task.id(), topic);
    }

    /// The next answer; `None` if none is expected. A call that panicked is one that was not answered.
    ///
    /// # Cancel safety
    /// Nothing is lost if it is dropped before it returns.
    pub(crate) async fn next(&mut self) -> Option<(Topic, Result<Answer, CommitError>)> {
        let (id, answer) = match self.tasks.join_next_with_id().await? {
            Ok((id, answer)) => (id, answer),
            Err(error) => (error.id(), Err(CommitError::Unavailable(error.to_string()))),
        };
        self.topics.remove(&id).map(|topic| (topic, answer))
    }
}
