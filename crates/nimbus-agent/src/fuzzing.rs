//! The decoders of the cache, for those who feed them with anything. No promise is made of what is here.

use std::path::Path;

use nimbus_client::Item;
use nimbus_core::{AgentId, Digest, Epoch, Position, Revision, ScopeHash};
use nimbus_disk::Image;
use nimbus_wire::v1;

use crate::cache::{
    Delta, Keeper, Settings,
    boot::BootId,
    load::Loaded,
    record::{Header, decode_key, decode_row, encode_row, seal_header, seal_row, unseal},
};

/// Reads the row of an object with the right checksum, and writes what was read.
///
/// # Errors
/// What is wrong with it.
pub fn rewrite_row(key: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
    let key = decode_key(key).map_err(|flaw| flaw.to_string())?;
    let (versions, _) = decode_row(&key, &seal_row(&key, body)).map_err(|flaw| flaw.to_string())?;
    let (row, _) = encode_row(&key, &versions);
    Ok(unseal(&row).ok_or("what was written has no checksum")?.1.to_vec())
}

/// Reads the header of that agent with the right checksum, and writes what was read.
///
/// # Errors
/// What is wrong with it.
pub fn rewrite_header(agent: &AgentId, body: &[u8]) -> Result<Vec<u8>, String> {
    let header = Header::from_bytes(&seal_header(body), agent).map_err(|flaw| flaw.to_string())?;
    header.position();
    header.when();
    Ok(unseal(&header.to_bytes()).ok_or("what was written has no checksum")?.1.to_vec())
}

/// Writes a file with these objects, of which the first was applied.
///
/// # Errors
/// If one is not well-formed, or the disk fails.
pub async fn write(path: &Path, agent: &AgentId, objects: Vec<v1::Object>) -> Result<(), String> {
    let items = objects.into_iter().map(|object| Item::new(object, Digest::ZERO));
    let puts = items.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    // What is written must not depend on the machine, and be the same after it was restarted.
    let settings = Settings { boot: BootId::new("boot-1"), inline: true, ..Settings::real() };
    let (keeper, ..) = Keeper::open_with(path, agent, settings).map_err(|error| error.to_string())?;
    let applied = puts.first().map(|item| (item.key().clone(), Some(item.clone()))).into_iter().collect();
    let position = Position { epoch: Epoch(7), revision: Revision(1), scope: ScopeHash(9) };
    keeper.save(Delta { position: Some(Some(position)), puts, applied, ..Delta::default() });
    keeper.barrier().await.map_err(|failure| format!("{failure:?}"))?;
    keeper.close().await;
    Ok(())
}

/// Reads a whole file of that agent, and says how many objects are in it. Panics of redb are among its errors.
///
/// # Errors
/// What is wrong with it.
pub fn load(agent: &AgentId, bytes: &[u8]) -> Result<usize, String> {
    let loaded = Loaded::from_file(Image::new(bytes), agent).map_err(|flaw| flaw.to_string())?;
    let memory = loaded.image.to_memory(None, loaded.when);
    Ok(memory.desired.len())
}
