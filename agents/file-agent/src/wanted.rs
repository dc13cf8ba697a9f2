//! A file as it should be, checked.

use nimbus_agent::Failure;

use crate::{
    command::{Allowed, Command, PLACEHOLDER},
    file::{Content, File},
    owner,
    path::FilePath,
    refusal,
    stamp::Stamp,
};

/// A file as it should be, checked before anything is touched.
pub(crate) struct Wanted {
    pub(crate) path: FilePath,
    pub(crate) content: Content,
    pub(crate) stamp: Stamp,
    pub(crate) adopt: bool,
    pub(crate) validate: Option<Command>,
    pub(crate) reload: Option<Command>,
}

/// What files have when the object does not say.
const DEFAULT_MODE: u32 = 0o644;

// === impl Wanted ===

impl Wanted {
    /// Reads the spec of an object.
    pub(crate) fn new(file: &File, allowed: &Allowed) -> Result<Self, Failure> {
        let path = FilePath::new(&file.path)?;
        let Some(content) = file.content.clone() else {
            return Err(refusal::invalid("no content (hint: give text or data; an empty text is an empty file)"));
        };
        let mode = parse_mode(&file.mode)?;
        let validate = Command::new(&file.validate, file.validate_timeout_ms, allowed)?;
        if validate.as_ref().is_some_and(|command| !command.has_placeholder()) {
            let message =
                format!("validate does not say where the path of the new file goes (hint: add {PLACEHOLDER})");
            return Err(refusal::invalid(message));
        }
        let reload = Command::new(&file.reload, file.reload_timeout_ms, allowed)?;
        let (uid, gid) = (owner::user(&file.owner)?, owner::group(&file.group)?);
        let stamp = Stamp::new(content.as_bytes(), mode, uid, gid);
        Ok(Self { path, content, stamp, adopt: file.adopt, validate, reload })
    }
}

/// Octal, as people write it. The bits above the permissions are not for the bus to give: a setuid file is a program
/// that anybody runs as its owner.
fn parse_mode(text: &str) -> Result<u32, Failure> {
    if text.is_empty() {
        return Ok(DEFAULT_MODE);
    }
    let is_octal = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| is_octal && *mode <= 0o777);
    mode.ok_or_else(|| {
        let shown: String = text.chars().take(20).collect();
        refusal::invalid(format!("mode {shown:?}: expected up to 0777 in octal, such as 0644"))
    })
}

#[cfg(test)]
mod tests;
