//! Every verdict, and the rule that it names.

use nimbus_core::Audience;
use nimbus_wire::v1::{Phase, Verdict};

use super::*;

/// One agent `a` in zone `c`, subscribed to Alpha, Beta and Zone; so many objects; what it says of them.
fn land() -> Land {
    let mut land = Land::new();
    land.connect("a", scope("a", "c", &["Alpha", "Beta", "Zone"]), None);
    let named_many: Vec<String> = (0..7).map(|n| format!("n{n}")).collect();
    let named_many: Vec<&str> = named_many.iter().map(String::as_str).collect();
    for (name, audience) in [
        ("applied", Audience::Everyone),
        ("zoned", selector("zone in (a,b)")),
        ("mine", named(&["a"])),
        ("theirs", named(&["b", "d"])),
        ("many", named(&named_many)),
        ("nobodys", named(&[])),
        ("Other/o", Audience::Everyone),
        ("failed", Audience::Everyone),
        ("pending", Audience::Everyone),
        ("degraded", Audience::Everyone),
        ("held", Audience::Everyone),
        ("Beta/held", Audience::Everyone),
        ("Zone/a", Audience::Everyone),
        ("Zone/far", selector("zone=far")),
        ("gone", Audience::Everyone),
        ("stuck", Audience::Everyone),
    ] {
        land.put(name, 1, audience);
    }
    land.delete("gone");
    land.delete("stuck");
    let head = land.store.state().head().0;
    let waits = |name: &str, on: &[&str]| v1::Exception {
        waits_for: on.iter().map(|name| key(name).to_wire()).collect(),
        ..exception(name, 1, Phase::Pending)
    };
    let exceptions = vec![
        v1::Exception { code: "E1".into(), message: "no such port".into(), ..exception("failed", 1, Phase::Failed) },
        v1::Exception { message: "in a moment".into(), ..exception("pending", 1, Phase::Pending) },
        exception("degraded", 1, Phase::Degraded),
        waits("held", &["Beta/held", "Zone/nothing", "Zone/far"]),
        waits("Beta/held", &["Zone/a", "held"]),
        v1::Exception { message: "no fabric".into(), retryable: true, ..exception("Zone/a", 1, Phase::Failed) },
        v1::Exception { message: "busy".into(), retryable: true, ..exception("stuck", 1, Phase::Failed) },
    ];
    land.say("a", Said { received: head, applied: head, exceptions, ..Said::default() })
        .unwrap();
    land
}

#[test]
fn every_verdict_says_why() {
    fn check(land: &Land, name: &str, verdict: Verdict, text: &str, rule: &str) {
        let (found, _) = land.find("a", &key(name));
        assert_eq!((found.verdict, &*found.text, &*found.rule), (verdict, text, rule), "{name}");
    }
    let mut land = land();
    let is_kept = |rule: &str| format!("is not sent to a: {rule}");
    check(&land, "nothing", Verdict::NoSuchObject, "does not exist", "");
    let rule = "the agent is subscribed to t.v1.Alpha, t.v1.Beta, t.v1.Zone only";
    check(&land, "Other/o", Verdict::KindNotSubscribed, &is_kept(rule), rule);
    let rule = "audience is zone in (a,b), the agent's labels are zone=c";
    check(&land, "zoned", Verdict::NotInAudience, &is_kept(rule), rule);
    let rule = "audience is b, d, the agent is not among them";
    check(&land, "theirs", Verdict::NotInAudience, &is_kept(rule), rule);
    let rule = "audience is n0, n1, n2, n3, n4 and 2 more, the agent is not among them";
    check(&land, "many", Verdict::NotInAudience, &is_kept(rule), rule);
    check(&land, "nobodys", Verdict::NotInAudience, &is_kept("the audience is nobody"), "the audience is nobody");
    let applied = "is applied: the agent has applied everything up to 18";
    check(&land, "applied", Verdict::Applied, applied, "");
    check(&land, "mine", Verdict::Applied, applied, "");
    let failed = "failed: E1: no such port (not tried again before it changes)";
    check(&land, "failed", Verdict::Failed, failed, "");
    check(&land, "pending", Verdict::Pending, "is pending: in a moment", "");
    check(&land, "degraded", Verdict::Degraded, "is applied, but degraded", "");
    let held = "waits for t.v1.Beta/held, t.v1.Zone/nothing, t.v1.Zone/far";
    check(&land, "held", Verdict::Held, held, "");
    let gone = "was deleted at revision 17, and the agent does not have it any more";
    check(&land, "gone", Verdict::Removed, gone, "");
    let stuck = "was deleted at revision 18, but at the agent it failed: busy";
    check(&land, "stuck", Verdict::Failed, stuck, "");

    land.put("applied", 2, Audience::Everyone);
    let coming = "is on its way: the agent has received everything up to 18, this is 19";
    check(&land, "applied", Verdict::NotReceived, coming, "");
    land.say("a", Said { received: 19, applied: 18, ..Said::default() }).unwrap();
    let arrived = "has arrived: the agent has applied everything up to 18, this is 19";
    check(&land, "applied", Verdict::Received, arrived, "");
    // What it says of an earlier generation is not about this one.
    land.put("failed", 2, Audience::Everyone);
    let coming = "is on its way: the agent has received everything up to 19, this is 20";
    check(&land, "failed", Verdict::NotReceived, coming, "");
    land.delete("pending");
    let coming = "was deleted at revision 21, but at the agent it is on its way: the agent has received everything up to \
                  19, this is 21";
    check(&land, "pending", Verdict::NotReceived, coming, "");
    land.cut("a");
    land.pass(5);
    check(&land, "failed", Verdict::NotReceived, "has not arrived: the agent has been away for 5 s", "");
    land.pass(LOST_AFTER);
    check(&land, "failed", Verdict::NotReceived, "has not arrived: the agent has been lost for 5 s", "");
}

#[test]
fn a_filter_names_the_part_that_an_object_does_not_pass() {
    fn check(filter: &v1::Filter, rule: &str) {
        let mut land = Land::new();
        land.connect("a", filtered(scope("a", "z", &["Alpha"]), filter), None);
        land.put("x", 1, Audience::Everyone);
        let (found, _) = land.find("a", &key("x"));
        assert_eq!((found.verdict, &*found.rule), (Verdict::FilteredOut, rule));
    }
    let filter = v1::Filter::default;
    check(
        &v1::Filter { names: vec!["y".into(), "z".into()], ..filter() },
        "filtered out by name in (y,z), found \"x\"",
    );
    check(&v1::Filter { namespaces: vec!["n".into()], ..filter() }, "filtered out by namespace in (n), found \"\"");
    let rule = "filtered out by selector tier=web, the object's labels are none";
    check(&v1::Filter { selector: "tier=web".into(), ..filter() }, rule);
    let rule = "filtered out by field spec.zone=a, found nothing";
    check(&v1::Filter { fields: vec!["spec.zone=a".into()], ..filter() }, rule);
}

#[test]
fn a_chain_follows_what_is_waited_for_once_each_and_says_why() {
    let (_, chain) = land().find("a", &key("held"));
    let hops: Vec<_> = chain.iter().map(|hop| (hop.verdict(), &*hop.explanation)).collect();
    assert_eq!(
        hops,
        [
            (Verdict::Held, "t.v1.Beta/held waits for t.v1.Zone/a, t.v1.Alpha/held"),
            (Verdict::NoSuchObject, "t.v1.Zone/nothing does not exist"),
            (
                Verdict::NotInAudience,
                "t.v1.Zone/far is not sent to a: audience is zone=far, the agent's labels are zone=c"
            ),
            (Verdict::Failed, "t.v1.Zone/a failed: no fabric"),
        ]
    );
}

#[test]
fn a_chain_is_cut_where_nobody_would_read_on() {
    let mut land = Land::new();
    land.connect("a", scope("a", "z", &[]), None);
    let exceptions = (0..100).map(|n| v1::Exception {
        waits_for: vec![key(&format!("x{}", n + 1)).to_wire()],
        ..exception(&format!("x{n}"), 0, Phase::Pending)
    });
    land.say("a", Said { exceptions: exceptions.collect(), ..Said::default() }).unwrap();
    assert_eq!(land.find("a", &key("x0")).1.len(), 16);
}
