//! Plain data that every room shares: ids, the plan of a session, trials and conclusions.
//!
//! Nothing here acts; all of it can be written to the journal and read back.

pub mod conclusion;
pub mod details;
pub mod ids;
pub mod plan;
pub mod trial;

pub use conclusion::{Conclusion, Doubt};
pub use details::CommitDetails;
pub use ids::{CommitId, ProcessIdentity, SessionId, TrialId, hex};
pub use plan::{Clean, CommandSpec, OnTimeout, Pins, Plan, SetupSpec};
pub use trial::{
    AttemptId, Classified, Ended, Judged, PrepareStep, Signature, SignatureClass, SkipReason,
    TrialRecord, TrialSpec,
};
