//! The signals that a drive hears.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Result};

/// Ctrl-C and TERM, counted. A lost terminal (HUP) is heard and ignored: the hunt goes on.
pub(super) struct Signals {
    int: Signal,
    term: Signal,
    hup: Signal,
    heard: bool,
}

impl Signals {
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| {
            signal(kind).map_err(|e| Error::failed("signals cannot be handled").caused_by(e))
        };
        Ok(Self {
            int: listen(SignalKind::interrupt())?,
            term: listen(SignalKind::terminate())?,
            hup: listen(SignalKind::hangup())?,
            heard: false,
        })
    }

    /// Waits for the next one: false for the first, true for any further one.
    pub(super) async fn next(&mut self) -> bool {
        loop {
            let counts = tokio::select! {
                _ = self.int.recv() => true,
                _ = self.term.recv() => true,
                _ = self.hup.recv() => false,
            };
            if counts {
                return std::mem::replace(&mut self.heard, true);
            }
        }
    }
}
