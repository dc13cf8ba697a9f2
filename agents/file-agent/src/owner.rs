//! Names of users and groups.

use std::{fs, path::Path};

use nimbus_agent::Failure;

use crate::refusal;

/// Where users are listed.
const USERS: &str = "/etc/passwd";

/// Where groups are listed.
const GROUPS: &str = "/etc/group";

/// The number of a user; none if `owner` is empty.
pub(crate) fn user(owner: &str) -> Result<Option<u32>, Failure> {
    find("user", owner, Path::new(USERS))
}

/// The number of a group; none if `group` is empty.
pub(crate) fn group(group: &str) -> Result<Option<u32>, Failure> {
    find("group", group, Path::new(GROUPS))
}

/// Numbers stand for themselves. Names are looked up in the local list only: a directory service that does not answer
/// must not stop an agent.
fn find(what: &str, name: &str, list: &Path) -> Result<Option<u32>, Failure> {
    if name.is_empty() {
        return Ok(None);
    }
    if let Ok(number) = name.parse::<u32>() {
        // All ones means `leave it as it is` to the system.
        let refuse = || refusal::invalid(format!("{number} is no {what}"));
        return (number != u32::MAX).then_some(Some(number)).ok_or_else(refuse);
    }
    let text = fs::read_to_string(list).map_err(|error| refusal::failed(format!("read {}", list.display()), error))?;
    match parse(&text, name) {
        Some(number) => Ok(Some(number)),
        None => {
            // It may be made later, so it is worth another try.
            let message = format!("{} has no {what} {name:?} (hint: give the number)", list.display());
            Err(Failure::new(message).with_code("NO_SUCH_OWNER"))
        }
    }
}

/// `name:password:number:…`
fn parse(list: &str, name: &str) -> Option<u32> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests;
