//! What people call kinds.

use nimbus_wire::v1;

use crate::kinds::Kinds;

fn kinds(names: &[&str]) -> Kinds {
    let info = |name: &&str| v1::KindInfo { kind: (*name).to_owned(), ..v1::KindInfo::default() };
    Kinds(names.iter().map(info).collect())
}

#[test]
fn a_kind_is_known_by_the_end_of_its_name() {
    let kinds =
        kinds(&["Plain", "demo.v1.Mesh", "demo.v1.NetworkPolicy", "demo.v1.Zone", "demo.v2.Zone", "other.Gateway"]);
    let check = |text: &str, expected: Result<&str, &str>| {
        let resolved = kinds.resolve(text).map_err(|failure| failure.to_string());
        assert_eq!(resolved.as_deref().map_err(String::as_str), expected, "{text}");
    };

    for text in ["demo.v1.NetworkPolicy", "v1.NetworkPolicy", "NetworkPolicy", "networkpolicy", "NETWORKPOLICIES"] {
        check(text, Ok("demo.v1.NetworkPolicy"));
    }
    check("plain", Ok("Plain"));
    check("meshes", Ok("demo.v1.Mesh"));
    check("gateways", Ok("other.Gateway"));
    check("v2.zones", Ok("demo.v2.Zone"));
    check(
        "zone",
        Err("kind \"zone\" is ambiguous: demo.v1.Zone, demo.v2.Zone (hint: write more of the name you mean)"),
    );
    // The end of a word is not the end of a name.
    check("policy", Err("kind \"policy\" is not known to the bus (hint: `nimbus kinds` lists them)"));
    check(
        "netwrkpolicy",
        Err("kind \"netwrkpolicy\" is not known to the bus (hint: did you mean demo.v1.NetworkPolicy?)"),
    );
    check(
        "demo.v1.Gateway",
        Err("kind \"demo.v1.Gateway\" is not known to the bus (hint: did you mean other.Gateway?)"),
    );
    check("", Err("kind \"\" is not known to the bus (hint: `nimbus kinds` lists them)"));
}

#[test]
fn a_kind_that_is_named_in_full_is_meant_even_if_another_ends_like_it() {
    let kinds = kinds(&["Zone", "demo.Zone"]);
    assert_eq!(kinds.resolve("Zone").unwrap(), "Zone");
    assert!(kinds.resolve("zone").is_err());
}

#[test]
fn a_bus_without_kinds_says_so() {
    let failure = kinds(&[]).resolve("zone").unwrap_err();
    assert_eq!(
        failure.to_string(),
        "kind \"zone\" is not known to the bus (hint: it knows none yet: `nimbus register FILE.proto` makes some)"
    );
}
