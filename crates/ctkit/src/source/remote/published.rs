//! What a publisher has on a bus.

use std::{collections::BTreeSet, sync::Arc};

use nimbus_core::{Kind, PublisherId};
use nimbus_store::Record;
use nimbus_wire::v1;
use tonic::{Code, Status};

use crate::source::remote::{leaf, link::Link};

/// A list that others push out of the memory of the bus begins again, this often.
const ATTEMPTS: usize = 3;

/// What a publisher has there now, of these kinds, at one revision.
pub(crate) async fn list(
    link: &Link,
    publisher: &PublisherId,
    kinds: &BTreeSet<Kind>,
) -> Result<Vec<Arc<Record>>, Status> {
    // Whoever asks for a kind that the bus has never heard of is told so, and gets nothing of the others.
    let known = v1::ListKindsRequest {};
    let known = link
        .call(known, |line, request| async move { line.bus().list_kinds(request).await })
        .await?;
    let known = known.kinds.into_iter().map(|info| info.kind);
    let kinds: Vec<String> = known.filter(|kind| kinds.contains(kind.as_str())).collect();
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let mut attempt = 1;
    loop {
        match pages(link, publisher, &kinds).await {
            Err(status) if status.code() == Code::Aborted && attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

async fn pages(link: &Link, publisher: &PublisherId, kinds: &[String]) -> Result<Vec<Arc<Record>>, Status> {
    let mut records = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRequest { kinds: kinds.to_vec(), page_token, ..Default::default() };
        let page = link.call(request, |line, request| async move { line.bus().list(request).await }).await?;
        let own = page.objects.iter().filter(|object| object.manager == publisher.as_str());
        records.extend(own.filter_map(leaf::read));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(records);
        }
    }
}
