use crate::logging::Filter;

#[test]
fn a_filter_is_a_level_or_levels_of_parts() {
    for good in ["info", "OFF", "warn,nimbus_bus=debug", "nimbus_store=trace, error", "nimbus_bus[session]=debug"] {
        assert!(good.parse::<Filter>().is_ok(), "{good}");
    }
}

#[test]
fn a_filter_that_is_none_is_told_apart_from_a_name() {
    for (bad, words) in [
        ("inof", "`inof` is no level: expected a level (off, error, warn, info, debug, trace)"),
        ("", "`` is no level"),
        ("info,nimbus_bus", "`nimbus_bus` is no level"),
        ("nimbus_bus=loud", "expected a level"),
    ] {
        let said = bad.parse::<Filter>().unwrap_err();
        assert!(said.contains(words), "{bad}: {said}");
    }
}
