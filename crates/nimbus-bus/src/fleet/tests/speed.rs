//! How long it takes to count a fleet. Nothing is asserted about time: set `NIMBUS_SPEED=10000` and look.

use std::env;

use nimbus_core::{Audience, Selector};
use nimbus_wire::v1::Phase;

use super::*;

#[test]
fn one_object_among_many_is_counted_at_one_look() {
    let count: u32 = env::var("NIMBUS_SPEED").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let mut land = Land::new();
    for n in 0..count {
        let id = format!("agent-{n:05}");
        land.connect(&id, scope(&id, &format!("z{}", n % 16), &[]), None);
    }
    for n in 0..count {
        let audience = match n % 4 {
            0 => Audience::Everyone,
            1 => selector("zone in (z0,z1,z2,z3)"),
            2 => selector(&format!("zone=z{}", n % 16)),
            _ => named(&[&format!("agent-{n:05}")]),
        };
        land.put(&format!("o{n}"), 1, audience);
    }
    let all: Vec<String> = (0..count).map(|n| format!("agent-{n:05}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    land.put("everyones", 1, Audience::Everyone);
    land.put("selected", 1, selector("zone notin (z15)"));
    let head = land.put("named", 1, named(&all));
    land.pass(1);
    for (n, id) in all.iter().enumerate() {
        let exceptions = (0..n % 20 / 19 * 50).map(|at| exception(&format!("o{at}"), 1, Phase::Failed)).collect();
        land.say(id, Said { received: head, applied: head, exceptions, ..Said::default() })
            .unwrap();
    }
    let few = Survey { max_agents: 0, selector: Selector::default(), count_lost: false };
    let targets = [
        ("everyones", Target::Object(key("everyones")), count),
        ("selected", Target::Object(key("selected")), count - count / 16),
        ("named", Target::Object(key("named")), count),
        ("o0, of which some failed", Target::Object(key("o0")), count),
        ("the last transaction", Target::Revision(Revision(head)), count),
        ("an old transaction", Target::Revision(Revision(1)), count),
    ];
    for (what, target, agents) in targets {
        let mut times: Vec<_> = (0..20)
            .map(|_| {
                let before = Instant::now();
                let found = land.survey(&target, &few).unwrap();
                assert!(found.agents.abs_diff(agents) <= 16, "{what}: {}", found.agents);
                before.elapsed()
            })
            .collect();
        times.sort();
        report(&format!("{what}: fastest {:?}, median {:?}, slowest {:?} of 20", times[0], times[10], times[19]));
    }
    let before = Instant::now();
    all.iter()
        .for_each(|id| drop(land.say(id, Said { received: head, applied: head, ..Said::default() })));
    report(&format!("one report: {:?}", before.elapsed() / count));
}

#[allow(clippy::print_stderr, reason = "for whoever measures; cargo shows it with --nocapture")]
fn report(line: &str) {
    eprintln!("{line}");
}
