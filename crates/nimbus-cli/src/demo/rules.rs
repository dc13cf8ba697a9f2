//! Rules as people write them, and as nftables has them.

use std::net::Ipv4Addr;

use ctkit::Failure;

/// Compiles all rules, or says which one is none. Only an edit can cure that.
pub(crate) fn compile(rules: &[String]) -> Result<Vec<String>, Failure> {
    let refusal = |rule: &String| {
        let expected = "expected allow|deny tcp|udp PORT [from NETWORK], such as: allow tcp 443 from 10.0.0.0/8";
        Failure::new(format!("rule {rule:?}: {expected}")).with_code("BAD_RULE").permanent()
    };
    rules.iter().map(|rule| statement(rule).ok_or_else(|| refusal(rule))).collect()
}

fn statement(rule: &str) -> Option<String> {
    let (action, protocol, port, source) = match rule.split_whitespace().collect::<Vec<_>>()[..] {
        [action, protocol, port] => (action, protocol, port, String::new()),
        [action, protocol, port, "from", network] if is_network(network) => {
            (action, protocol, port, format!("ip saddr {network} "))
        }
        _ => return None,
    };
    let verdict = match action {
        "allow" => "accept",
        "deny" => "drop",
        _ => return None,
    };
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    (is_port && ["tcp", "udp"].contains(&protocol)).then(|| format!("{source}{protocol} dport {port} {verdict}"))
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    address.parse::<Ipv4Addr>().is_ok() && bits.parse().is_ok_and(|bits: u8| bits <= 32)
}

#[cfg(test)]
mod tests;
