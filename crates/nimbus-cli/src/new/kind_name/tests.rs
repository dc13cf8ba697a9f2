//! Kinds that code can be written for, and what is said of the others.

use crate::new::KindName;

fn refused(kind: &str, why: &str, hint: &str) {
    let said = format!("{kind:?} cannot be a kind here: {why} (hint: such as {hint})");
    assert_eq!(KindName::parse(kind).unwrap_err().to_string(), said);
}

#[test]
fn a_kind_has_a_file_of_its_own() {
    let check = |kind: &str, file: &str, short: &str| {
        let parsed = KindName::parse(kind).unwrap();
        assert_eq!((parsed.proto_file(), parsed.short()), (file.to_owned(), short.to_owned()), "{kind}");
    };
    check("demo.v1.Thing", "demo/v1/thing.proto", "thing");
    check("team_a.net.v2.NetworkPolicy", "team_a/net/v2/network_policy.proto", "networkpolicy");
    check("x.AThing", "x/a_thing.proto", "athing");
    check("x.Ipv6Route2", "x/ipv6_route2.proto", "ipv6route2");
}

#[test]
fn what_is_no_kind_is_refused_with_one_that_is() {
    let package = "its package is not words in lower case with dots between them";
    let name = "its name is not one in CamelCase that Rust has, too";
    refused("Thing", "a kind has a package and a name", "demo.v1.Thing");
    refused("network policy", "a kind has a package and a name", "demo.v1.NetworkPolicy");
    refused("", "a kind has a package and a name", "demo.v1.Thing");
    refused(".Thing", package, "demo.v1.Thing");
    refused("Demo.v1.Thing", package, "demo.v1.Thing");
    refused("a..Thing", package, "demo.v1.Thing");
    refused("a_.Thing", package, "demo.v1.Thing");
    refused("../../x.Thing", package, "demo.v1.Thing");
    refused("type.v1.Thing", "type is a word of Rust", "demo.v1.Thing");
    refused("nimbus.v1.Object", "its package belongs to somebody else", "demo.v1.Thing");
    refused("google.protobuf.Any", "its package belongs to somebody else", "demo.v1.Thing");
    refused("demo.v1.", name, "demo.v1.Thing");
    refused("demo.v1.thing", name, "demo.v1.Thing");
    refused("demo.v1.network_policy", name, "demo.v1.NetworkPolicy");
    refused("demo.v1.HTTPRoute", name, "demo.v1.HttpRoute");
    refused("demo.v1.RouteID", name, "demo.v1.RouteId");
    refused("demo.v1.2Things", name, "demo.v1.Things");
    refused("demo.v1.Self", name, "demo.v1.Thing");
    refused(&format!("demo.v1.{}", "T".repeat(200)), "it is longer than 200", "demo.v1.Thing");
}
