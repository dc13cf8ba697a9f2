//! What a bus lists.

use std::collections::BTreeMap;

use anyhow::ensure;
use nimbus_wire::v1;

use crate::powercut::{ledger::Objects, life::Life};

/// All that a bus lists, at one revision.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) epoch: u64,
    pub(crate) revision: u64,
    pub(crate) objects: Vec<v1::Object>,
    pub(crate) incomplete_kinds: Vec<String>,
}

/// Several pages, so that paging is used, too.
const PAGE: u32 = 100;

// === impl Listing ===

impl Listing {
    pub(crate) async fn read(life: &Life, request: v1::ListRequest) -> anyhow::Result<Self> {
        let mut bus = life.bus();
        let mut request = v1::ListRequest { page_size: PAGE, ..request };
        let mut listing = Self { epoch: 0, revision: 0, objects: Vec::new(), incomplete_kinds: Vec::new() };
        loop {
            let page = bus.list(request.clone()).await?.into_inner();
            ensure!(listing.epoch == 0 || (listing.epoch, listing.revision) == (page.epoch, page.revision));
            (listing.epoch, listing.revision) = (page.epoch, page.revision);
            listing.objects.extend(page.objects);
            listing.incomplete_kinds = page.incomplete_kinds;
            if page.next_page_token.is_empty() {
                return Ok(listing);
            }
            request.page_token = page.next_page_token;
        }
    }

    /// The objects of each publisher, by their names.
    pub(crate) fn by_publisher(&self) -> BTreeMap<&str, Objects> {
        let mut publishers: BTreeMap<&str, Objects> = BTreeMap::new();
        for object in &self.objects {
            publishers.entry(&object.manager).or_default().insert(object.name.clone(), object.clone());
        }
        publishers
    }
}
