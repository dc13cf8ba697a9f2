//! What a bus says of itself in its metrics.

use crate::{
    http_client::{Answer, get},
    server::Server,
    wait,
};

/// The value of a metric by its name and labels; panics if there is none.
pub(crate) async fn metric(server: &Server, name: &str) -> f64 {
    let Answer { status, body, .. } = get(&server.admin, "/metrics").await;
    assert_eq!(status, 200);
    let found = body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("{name} is not in {body}")).parse().unwrap()
}

/// Waits until a metric has a value.
pub(crate) async fn metric_becomes(server: &Server, name: &str, wanted: f64) {
    let poll = async { while metric(server, name).await != wanted {} };
    wait::for_it(&format!("{name} {wanted}"), poll).await;
}
