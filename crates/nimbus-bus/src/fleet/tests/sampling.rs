//! How long it takes until everybody has it.

use super::*;
use crate::fleet::sampling::{Sampled, Sampler};

impl Land {
    fn sample(&self, sampler: &mut Sampler) -> Option<Sampled> {
        sampler.look(&self.fleet, &self.store.state(), &NoFields, self.now)
    }
}

#[test]
fn a_sample_takes_as_long_as_the_last_agent_however_late_somebody_looks() {
    let (mut land, mut sampler) = (Land::new(), Sampler::default());
    assert_eq!(land.sample(&mut sampler), None, "nothing was published");
    for id in ["a", "b"] {
        land.connect(id, scope(id, "z", &[]), None);
    }
    let first = land.at(0).put("x", 1, Audience::Everyone);
    assert_eq!(land.sample(&mut sampler), None);
    land.at(100).applied("a", first);
    assert_eq!(land.at(150).sample(&mut sampler), None, "one of two");
    land.at(200).applied("b", first);
    let second = land.at(300).put("y", 1, Audience::Everyone);
    assert_eq!(land.at(5_000).sample(&mut sampler), Some(Sampled::Took(Duration::from_millis(200))));
    for id in ["a", "b"] {
        land.at(5_300).applied(id, second);
    }
    assert_eq!(land.at(9_000).sample(&mut sampler), Some(Sampled::Took(Duration::from_secs(5))));
    assert_eq!(land.sample(&mut sampler), None, "once each");

    let third = land.at(10_000).put("x", 2, Audience::Everyone);
    assert_eq!(land.sample(&mut sampler), None);
    land.at(10_100).put("x", 3, Audience::Everyone);
    ["a", "b"].into_iter().for_each(|id| land.applied(id, third));
    assert_eq!(land.sample(&mut sampler), None, "what has changed again says nothing, rather than something wrong");
}

#[test]
fn a_sample_that_somebody_never_applies_is_given_up_and_the_newest_one_is_next() {
    let (mut land, mut sampler) = (Land::new(), Sampler::default());
    land.connect("a", scope("a", "z", &[]), None);
    land.at(0).put("x", 1, Audience::Everyone);
    assert_eq!(land.at(60_000).sample(&mut sampler), None);
    land.put("x", 2, Audience::Everyone);
    let third = land.put("x", 3, Audience::Everyone);
    assert_eq!(land.at(60_001).sample(&mut sampler), Some(Sampled::GivenUp));
    land.at(60_500).applied("a", third);
    assert_eq!(land.sample(&mut sampler), Some(Sampled::Took(Duration::from_millis(500))));
}

#[test]
fn who_is_not_concerned_or_lost_makes_no_sample_longer() {
    let (mut land, mut sampler) = (Land::new(), Sampler::default());
    land.connect("a", scope("a", "z", &[]), None);
    land.connect("b", scope("b", "z", &["Beta"]), None);
    land.connect("lost", scope("lost", "z", &[]), None);
    let first = land.at(0).put("x", 1, Audience::Everyone);
    land.cut("lost");
    land.at(10).applied("a", first);
    assert_eq!(land.sample(&mut sampler), None, "who has just gone may come back");
    land.pass(LOST_AFTER);
    assert_eq!(land.sample(&mut sampler), Some(Sampled::Took(Duration::from_millis(10))));
    land.put("y", 1, named(&["nobody"]));
    assert_eq!(land.sample(&mut sampler), None, "nobody is concerned");
}

/// The sampler waited for something to happen whenever it was through with a transaction. What was published meanwhile had
/// happened already, and was followed only if something else happened later.
#[test]
fn what_was_published_while_another_transaction_was_followed_is_next_though_nothing_happens_any_more() {
    let (mut land, mut sampler) = (Land::new(), Sampler::default());
    assert!(sampler.rests(&land.fleet), "nothing was published");
    land.connect("a", scope("a", "z", &[]), None);
    land.at(0).put("x", 1, Audience::Everyone);
    assert_eq!(land.sample(&mut sampler), None);
    assert!(!sampler.rests(&land.fleet), "it is followed");
    land.put("x", 2, Audience::Everyone);
    let third = land.put("y", 1, Audience::Everyone);
    land.at(100).applied("a", third);
    assert_eq!(land.sample(&mut sampler), None, "it has changed again");
    assert!(!sampler.rests(&land.fleet), "there is a newer one");
    assert_eq!(land.sample(&mut sampler), Some(Sampled::Took(Duration::from_millis(100))));
    assert!(sampler.rests(&land.fleet));
}
