//! Rules as people write them, and as nftables has them.

use std::net::Ipv4Addr;

/// Why a rule is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    #[error("rule {0:?}: expected ACTION PROTOCOL PORT [from NETWORK], such as: allow tcp 443 from 10.0.0.0/8")]
    Shape(String),
    #[error("rule {0:?}: the action is allow or deny")]
    Action(String),
    #[error("rule {0:?}: the protocol is tcp or udp")]
    Protocol(String),
    #[error("rule {0:?}: the port is a number between 1 and 65535")]
    Port(String),
    #[error("rule {0:?}: the network is one such as 10.0.0.0/8")]
    Network(String),
}

/// Compiles all rules, or says which one is none.
pub(crate) fn compile(rules: &[String]) -> Result<Vec<String>, RuleError> {
    rules.iter().map(|rule| statement(rule)).collect()
}

fn statement(rule: &str) -> Result<String, RuleError> {
    let (action, protocol, port, network) = match rule.split_whitespace().collect::<Vec<_>>()[..] {
        [action, protocol, port] => (action, protocol, port, None),
        [action, protocol, port, "from", network] => (action, protocol, port, Some(network)),
        _ => return Err(RuleError::Shape(rule.to_owned())),
    };
    let verdict = match action {
        "allow" => "accept",
        "deny" => "drop",
        _ => return Err(RuleError::Action(rule.to_owned())),
    };
    if !["tcp", "udp"].contains(&protocol) {
        return Err(RuleError::Protocol(rule.to_owned()));
    }
    let port = port
        .parse()
        .ok()
        .filter(|port: &u16| *port > 0)
        .ok_or_else(|| RuleError::Port(rule.to_owned()))?;
    if !network.is_none_or(is_network) {
        return Err(RuleError::Network(rule.to_owned()));
    }
    let source = network.map(|network| format!("ip saddr {network} ")).unwrap_or_default();
    Ok(format!("{source}{protocol} dport {port} {verdict}"))
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    address.parse::<Ipv4Addr>().is_ok() && bits.parse().is_ok_and(|bits: u8| bits <= 32)
}
