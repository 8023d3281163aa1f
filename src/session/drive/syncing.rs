//! Syncs of the journal, each beside the preparation of the next trial.

use tokio::task::JoinError;

use super::Drive;
use crate::error::Error;
use crate::journal::StoreError;

impl Drive<'_> {
    /// Has the journal synced while the next trial is made ready; its repro waits for it.
    pub(super) fn sync_soon(&mut self) {
        match self.opened.journal.sync_elsewhere() {
            Ok(sync) => {
                self.last_sync += 1;
                let number = self.last_sync;
                self.syncs.spawn_blocking(move || (number, sync()));
            }
            Err(e) => self.fail(unwritable(e)),
        }
    }

    pub(super) fn synced(
        &mut self,
        synced: std::result::Result<(u64, std::result::Result<(), StoreError>), JoinError>,
    ) {
        match synced {
            // One that began later covers those before it.
            Ok((number, Ok(()))) => {
                self.on_disk.send_modify(|done| *done = number.max(*done));
            }
            Ok((_, Err(e))) => self.fail(unwritable(e)),
            Err(e) => {
                self.fail(
                    Error::failed("the journal's sync failed; this is a bug in fbisect")
                        .caused_by(e),
                );
            }
        }
    }
}

pub(super) fn unwritable(e: StoreError) -> Error {
    Error::failed("the session cannot go on, because its journal cannot be written")
        .caused_by(e)
        .hint("what was written is safe: make room, then `fbisect resume`")
}
