//! The end of a drive: how it ended is written down, and nothing is left behind.

use tokio::task::JoinSet;

use super::{Closed, Drive, Ending};
use crate::error::Result;
use crate::journal::{Event, Sync};
use crate::model::Conclusion;
use crate::reports::console;
use crate::search::Search as _;
use crate::session::open::now;

impl Drive<'_> {
    /// Everything has landed: says how it ended and leaves nothing behind.
    pub(super) async fn close(mut self) -> Result<Closed> {
        self.progress.close();
        while let Some(synced) = self.syncs.join_next().await {
            self.synced(synced);
        }
        let elapsed_seconds = self.elapsed();
        let at = now();
        let ending = self.ending.take().unwrap_or(Ending::TrialsSpent);
        let closed = match ending {
            Ending::Failed => Closed::Interrupted,
            Ending::Interrupted => {
                self.record(
                    &[Event::Interrupted {
                        at,
                        elapsed_seconds,
                    }],
                    Sync::Yes,
                );
                Closed::Interrupted
            }
            Ending::Concluded(conclusion) => self.conclude(conclusion, at, elapsed_seconds),
            Ending::TrialsSpent | Ending::TimeSpent => {
                let suspects = self.opened.search.suspects();
                let commits = suspects
                    .iter()
                    .map(|n| self.opened.history.commits[*n as usize].clone());
                let conclusion = Conclusion::BudgetSpent {
                    commits: commits.collect(),
                };
                self.conclude(conclusion, at, elapsed_seconds)
            }
        };
        let mut removals = JoinSet::new();
        for slot in self.slots.drain(..).flatten() {
            removals.spawn_blocking(move || slot.remove());
        }
        while let Some(removed) = removals.join_next().await {
            if let Ok(Err(e)) = removed {
                console::warn(&format!("a worktree could not be removed: {e}"));
            }
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(closed),
        }
    }

    pub(super) fn conclude(
        &mut self,
        conclusion: Conclusion,
        at: String,
        elapsed_seconds: f64,
    ) -> Closed {
        let event = Event::Concluded {
            at,
            conclusion,
            elapsed_seconds,
        };
        self.record(&[event], Sync::Yes);
        Closed::Concluded
    }
}
