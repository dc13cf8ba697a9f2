//! Drafts as the store takes them.

use std::sync::Arc;

use nimbus_core::{Draft, DraftParts, InvalidDraft, Spec};

/// Checks a draft and packs its spec, so that drafts of all kinds are one type.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn pack<K: Spec>(draft: Draft<K>) -> Result<nimbus_store::Draft, InvalidDraft> {
    let DraftParts { key, uid, generation, labels, annotations, audience, refs, owner, spec, .. } =
        draft.into_parts()?;
    let spec = spec.pack_to_vec().into();
    let owner = owner.map(Arc::new);
    Ok(nimbus_store::Draft { key, uid, generation, labels, refs, owner, annotations, audience, spec })
}

#[cfg(test)]
mod tests;
