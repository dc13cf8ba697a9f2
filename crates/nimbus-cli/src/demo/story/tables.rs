//! What agents have in force, against what the bus has for them.

use std::collections::BTreeMap;

use ctkit::Object;
use nimbus_agent::ObjectKey;

use crate::demo::{
    cast::Cast,
    kinds::ZoneRules,
    stage::{Stage, Untrue},
};

/// Checks that every agent has exactly what the bus has for its zone, to the last statement.
pub(super) async fn compare(stage: &mut Stage, cast: &Cast) -> Result<(), Untrue> {
    let wanted = wanted(cast).await;
    let wanted = stage.must("the rules are listed", wanted)?;
    let none = BTreeMap::new();
    let differs = |zone: &str, has: BTreeMap<_, _>| has != *wanted.get(zone).unwrap_or(&none);
    let members = cast.fleet.members();
    let others: Vec<_> = members.filter(|(_, zone, member)| differs(zone, member.table.in_force())).collect();
    let seen = format!("{} agents do not, such as {:?}", others.len(), others.first().map(|(id, ..)| id));
    stage.check("every agent has exactly what the bus has for its zone", others.is_empty(), &seen)
}

/// What should be in force in each zone.
async fn wanted(cast: &Cast) -> Result<BTreeMap<String, BTreeMap<ObjectKey, Vec<String>>>, String> {
    let mut zones = BTreeMap::<_, BTreeMap<_, _>>::new();
    for object in cast.operator.rules().await? {
        let rules = Object::<ZoneRules>::from_wire(&object).map_err(|error| error.to_string())?;
        let ZoneRules { zone, statements } = rules.spec.clone();
        zones.entry(zone).or_default().insert(rules.key().clone(), statements);
    }
    Ok(zones)
}
