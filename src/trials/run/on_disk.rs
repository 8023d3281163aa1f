//! The wait for the journal: no repro starts before the trials ahead of it are on disk.

use tokio::sync::watch;

/// When the session's earlier trials are on disk: before that no repro starts, so that a power cut
/// costs no more than what runs.
#[derive(Debug)]
pub struct OnDisk {
    /// The number of the sync that covers them.
    pub wanted: u64,
    /// Up to which number syncs are done.
    pub done: watch::Receiver<u64>,
}

impl OnDisk {
    /// Comes back when they are; never, if the session is gone before.
    pub(super) async fn reached(mut self) {
        if self
            .done
            .wait_for(|done| *done >= self.wanted)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_repro_waits_for_the_sync_of_the_trials_before_it() {
        let (sync, done) = watch::channel(0);
        let wait = OnDisk { wanted: 2, done };
        let mut wait = pin!(wait.reached());
        let mut context = Context::from_waker(Waker::noop());
        let mut is_over = || wait.as_mut().poll(&mut context).is_ready();
        assert!(!is_over());
        sync.send_replace(1);
        assert!(!is_over());
        sync.send_replace(3);
        assert!(is_over());
    }

    #[test]
    fn without_a_session_nothing_counts_as_written() {
        let (sync, done) = watch::channel(0);
        let mut wait = pin!(OnDisk { wanted: 1, done }.reached());
        drop(sync);
        let mut context = Context::from_waker(Waker::noop());
        assert!(wait.as_mut().poll(&mut context).is_pending());
    }
}
