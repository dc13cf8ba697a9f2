//! What must be true of a bus that has just come back, as far as it can be seen from the outside.

use nimbus_wire::v1;

use crate::powercut::{
    crew::{Crew, Fates},
    life::Life,
    listing::Listing,
    subscriber::Subscriber,
    thing,
    witness::{Sent, shown},
};

/// Compares what the bus lists with what was acknowledged and what was sent.
pub(crate) async fn check_content(life: &Life, crew: &mut Crew) -> anyhow::Result<Fates> {
    let witness = &life.witness;
    let newest = witness.newest();
    let listing = Listing::read(life, v1::ListRequest::default()).await?;
    witness.hear(listing.epoch, listing.revision);
    if listing.revision < newest {
        witness.accuse(format_args!("the bus is at revision {}, and was at {newest}", listing.revision));
    }
    if !listing.incomplete_kinds.is_empty() {
        witness.accuse(format_args!("kinds are not complete any more: {:?}", listing.incomplete_kinds));
    }
    let fates = crew.settle(life, &listing);
    for (name, sent) in witness.all_sent() {
        let found = listing.objects.iter().find(|object| object.name == name);
        let holds = match (&sent, found) {
            (_, Some(found)) if found.revision > sent.revision() => true,
            (Sent::Put(object, revision), Some(found)) => found.revision == *revision && shown(found) == **object,
            (Sent::Put(..), None) => crew.has_ended(&name, &sent),
            (Sent::Delete(_), found) => found.is_none(),
        };
        if !holds {
            witness.accuse(format_args!("subscribers were sent {sent:?} of {name}, but there is {found:?}"));
        }
    }
    check_kinds(life, &listing).await?;
    crew.check_fence(life).await;
    Ok(fates)
}

/// Compares what subscribers hold with what the bus lists for them. Nobody writes meanwhile.
pub(crate) async fn check_subscribers(
    life: &Life,
    subscribers: impl Iterator<Item = &Subscriber>,
) -> anyhow::Result<()> {
    for subscriber in subscribers {
        let listing = Listing::read(life, subscriber.list_request()).await?;
        let caught_up = subscriber.catch_up(listing.revision).await;
        if let Err(what) = caught_up.and_then(|()| subscriber.compare(&listing.objects)) {
            life.witness.accuse(what);
        }
    }
    Ok(())
}

/// Kinds that were registered still are, and are of use.
async fn check_kinds(life: &Life, listing: &Listing) -> anyhow::Result<()> {
    let known = life.bus().list_kinds(v1::ListKindsRequest {}).await?.into_inner().kinds;
    for kind in life.witness.kinds() {
        if !known.iter().any(|known| known.kind == kind && known.registered) {
            life.witness.accuse(format_args!("{kind} is not registered any more"));
        }
    }
    let zone = thing::ZONES[0];
    let filter = v1::Filter { fields: vec![format!("spec.zone={zone}")], ..v1::Filter::default() };
    let request = v1::ListRequest { kinds: vec![thing::KIND.into()], filter: Some(filter), ..Default::default() };
    let found = Listing::read(life, request).await?.objects.len();
    let expected = listing
        .objects
        .iter()
        .filter(|object| thing::zone(object).as_deref() == Some(zone))
        .count();
    if found != expected {
        life.witness
            .accuse(format_args!("{found} objects are in zone {zone} by filter, not {expected}"));
    }
    Ok(())
}
