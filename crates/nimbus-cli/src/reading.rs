//! Many objects by name.

use nimbus_wire::v1;
use tokio::task::JoinSet;

use crate::{
    client::Client,
    failure::{Exit, Failure},
};

/// Questions under way: the way to the bus costs nothing then, and others get their turn.
const UNDER_WAY: usize = 16;

/// The objects that have these names, in the same order; none where there is none.
pub(crate) async fn get_all(client: &Client, keys: &[v1::Key]) -> Result<Vec<Option<v1::Object>>, Failure> {
    let mut objects = vec![None; keys.len()];
    let mut waiting = keys.iter().cloned().enumerate();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < UNDER_WAY
            && let Some((index, key)) = waiting.next()
        {
            let client = client.clone();
            under_way.spawn(async move { (index, get(&client, key).await) });
        }
        let Some(joined) = under_way.join_next().await else { return Ok(objects) };
        let (index, object) = joined.expect("nothing in it panics, and nobody aborts it");
        objects[index] = object?;
    }
}

/// One object, if it is there.
pub(crate) async fn get(client: &Client, key: v1::Key) -> Result<Option<v1::Object>, Failure> {
    let v1::Key { kind, namespace, name } = key;
    match client.call(client.bus().get(v1::GetRequest { kind, namespace, name })).await {
        Ok(answer) => Ok(answer.object),
        Err(failure) if failure.is(Exit::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}
