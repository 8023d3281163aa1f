//! How many trials a search over a commit graph still needs, for the reader of its progress. The
//! search itself does not ask this.

use super::{Bisect, Node};
use crate::search::{Outcome, Purpose};

impl Bisect {
    /// Trials still expected with one slot: (fewest, most), where every question halves.
    pub(super) fn trials_left(&self, suspects: &[Node]) -> (u32, u32) {
        if self.spoiled_end().is_some() {
            return (0, 0);
        }
        let open = self.ends().filter(|&end| !self.settled(end)).count() as u32;
        let repeats = if self.settled((self.ends.bad, Purpose::BadEnd)) {
            0
        } else {
            let told = self.record.outcomes(self.ends.bad, Purpose::BadEnd).count() as u32;
            self.bad_end_trials().saturating_sub(told + 1)
        };
        let (fewest, most) = self.trials_to_name(suspects);
        (open + fewest, open + repeats + most)
    }

    /// Trials that narrow these suspects down to one and confirm it: (fewest, most).
    fn trials_to_name(&self, suspects: &[Node]) -> (u32, u32) {
        let count = suspects.len();
        // Where nothing was skipped, two suspects can always be told apart.
        let hidden = count > 1
            && !self.record.points(Outcome::Skip).is_empty()
            && self.narrowing(&[], 1).is_empty();
        if count == 0 || hidden {
            return (0, 0);
        }
        let (halvings, uneven) = (count.ilog2(), u32::from(!count.is_power_of_two()));
        if self.policy.deterministic {
            return (halvings, halvings + uneven);
        }
        let confirmations = |&s: &Node| match count {
            1 => self.unconfirmed(s).len() as u32,
            _ => 1 + self.graph.parents(s).len() as u32,
        };
        let fewest = suspects.iter().map(confirmations).min().unwrap_or(0);
        let most = suspects.iter().map(confirmations).max().unwrap_or(0);
        (halvings + fewest, halvings + uneven + most)
    }
}
