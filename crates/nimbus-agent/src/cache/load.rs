//! Reading a file that may be damaged.

use std::time::SystemTime;

use nimbus_core::AgentId;
use nimbus_disk::Overlay;
use redb::{ReadableDatabase, ReadableTable, StorageBackend};

use crate::cache::{
    boot::BootId,
    flaw::Flaw,
    image::Image,
    ledger::Ledger,
    record::{decode_key, decode_row},
    store::{OBJECTS, builder, read_header},
};

/// A file is mostly free space if it is this large and four times what is in it. redb's files have at least a megabyte
/// while they are open, and grow by doubling.
const SMALL: u64 = 4 << 20;

/// What was read from a file.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) image: Image,
    pub(crate) ledger: Ledger,
    /// The last change in it.
    pub(crate) sequence: u64,
    /// When and in which run of the machine it was written.
    pub(crate) when: Option<(SystemTime, Option<BootId>)>,
    /// Whether the file should be made anew: because there is none, because it is mostly free space, or because redb
    /// would have to repair more than the traces of a crash.
    pub(crate) renew: bool,
}

// === impl Loaded ===

impl Loaded {
    /// There is no file.
    pub(crate) fn nothing() -> Self {
        Self { renew: true, ..Self::default() }
    }

    /// Reads a file, which stays as it is.
    ///
    /// All of it is verified, by redb and then here. The result is what one commit wrote: the last one, or the one
    /// before if the last one did not end.
    pub(crate) fn from_file(file: impl StorageBackend, agent: &AgentId) -> Result<Self, Flaw> {
        Flaw::catch(|| {
            let overlay = Overlay::new(file)?;
            let size = overlay.len()?;
            let mut database = builder().create_with_backend(overlay)?;
            // redb by itself verifies checksums only after a crash.
            let intact = database.check_integrity()?;
            let transaction = database.begin_read()?;
            let header = read_header(&transaction, agent)?;

            let mut image = Image { position: header.position(), ..Image::default() };
            let mut ledger = Ledger::default();
            let mut content = 0;
            let mut boot: Option<BootId> = None;
            for row in transaction.open_table(OBJECTS)?.iter()? {
                let (key, value) = row?;
                content += (key.value().len() + value.value().len()) as u64;
                let key = decode_key(key.value())?;
                let (mut versions, checksum) = decode_row(&key, value.value())?;
                // Nearly all are the same: one allocation is enough for them.
                if versions.applied_in == boot {
                    versions.applied_in.clone_from(&boot);
                } else if versions.applied_in.is_some() {
                    boot.clone_from(&versions.applied_in);
                }
                ledger.set(key.clone(), Some(checksum));
                image.objects.insert(key, versions);
            }
            if !header.matches(&ledger) {
                return Err(Flaw::Content("the rows are not those that the header was written with".into()));
            }
            let renew = !intact || size > content * 4 + SMALL;
            Ok(Self { image, ledger, sequence: header.sequence, when: header.when(), renew })
        })
    }
}
