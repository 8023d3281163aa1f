//! The slots of a session: how many, with which GPUs, and which one a trial gets.

use crate::error::{Error, Result};
use crate::executors::devices::{self, Probe, Visible};
use crate::model::CommitId;
use crate::trials::slot::Slot;

/// Makes the slots. With more than one, the visible GPUs are divided among them.
///
/// The second value is a warning for the user, where the GPUs could not be counted.
///
/// # Errors
/// When there are more slots than GPUs.
pub(super) fn make(jobs: usize) -> Result<(Vec<Option<Slot>>, Option<String>)> {
    let (shares, warning) = if jobs <= 1 {
        (vec![None], None)
    } else {
        shares(jobs)?
    };
    let slots = shares.into_iter().enumerate();
    Ok((
        slots
            .map(|(i, devices)| Some(Slot::new(i, devices)))
            .collect(),
        warning,
    ))
}

fn shares(jobs: usize) -> Result<(Vec<Option<String>>, Option<String>)> {
    let mut warning = None;
    let visible = if let Ok(value) = std::env::var("CUDA_VISIBLE_DEVICES") {
        Some(Visible::from_variable(&value))
    } else {
        let probe = std::env::current_exe()
            .map_err(|e| e.to_string())
            .and_then(|exe| devices::probe(&exe).map_err(|e| e.to_string()));
        match probe {
            Ok(probe @ Probe::Gpus { .. }) => Some(Visible::from_probe(&probe)),
            Ok(Probe::None { .. }) => None,
            Err(why) => {
                warning = Some(format!(
                    "the GPUs could not be counted ({why}); every slot sees all of them. \
                     Set CUDA_VISIBLE_DEVICES to have them divided"
                ));
                None
            }
        }
    };
    let Some(visible) = visible else {
        return Ok((vec![None; jobs], warning));
    };
    let shares = devices::divide(&visible, jobs).map_err(|e| Error::usage(e.to_string()))?;
    Ok((shares, warning))
}

/// Takes the free slot where a commit is built, else the first free one.
pub(super) fn take(slots: &mut [Option<Slot>], commit: &CommitId) -> Option<Slot> {
    let built = |slot: &Option<Slot>| slot.as_ref().is_some_and(|s| s.built() == Some(commit));
    let index = slots.iter().position(built);
    let index = index.or_else(|| slots.iter().position(Option::is_some))?;
    slots.get_mut(index)?.take()
}
