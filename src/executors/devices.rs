//! The GPUs of this machine, and how slots share them. The only user of cudarc.
//!
//! Counting takes no memory on a GPU: no context is made. It runs in a short-lived child process,
//! since a broken driver may panic, crash or hang whoever asks it. Sharing is a pure function of
//! what is visible; it knows no process and no trial.

use std::path::Path;
use std::time::Duration;

use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};

/// The hidden argument with which the program answers [`probe`].
pub const PROBE_ARGUMENT: &str = "__probe-gpus";

/// How long the driver may take to answer. It can take many seconds where it is not kept loaded.
const PROBE_PATIENCE: Duration = Duration::from_mins(1);

/// One GPU, as the CUDA driver shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its number among the visible ones, from 0.
    pub index: u32,
    /// The model.
    pub name: String,
    /// `GPU-` and the identifier; `None` where the driver does not tell.
    pub uuid: Option<String>,
    /// Bytes of memory.
    pub total_bytes: u64,
    /// Compute capability: major, minor.
    pub capability: (u32, u32),
}

/// What the driver says of this machine, `CUDA_VISIBLE_DEVICES` taken into account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "found")]
pub enum Probe {
    /// At least one GPU.
    Gpus {
        /// The newest CUDA version that the driver supports: major, minor.
        driver: (u32, u32),
        /// The visible GPUs in the driver's order.
        gpus: Vec<Gpu>,
    },
    /// None, which is an ordinary answer.
    None {
        /// No driver, or a driver without a visible device.
        why: String,
    },
}

/// Why it could not be told which GPUs there are.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The driver answered with an error, or lacks a function.
    #[error(
        "cannot tell which GPUs there are: {0} (does `nvidia-smi` work here? CUDA_VISIBLE_DEVICES= hides them)"
    )]
    Driver(String),
    /// The child process could not be run.
    #[error("cannot tell which GPUs there are: cannot run {program} {PROBE_ARGUMENT}")]
    Spawn {
        /// The executable.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It crashed, hung, or printed something else.
    #[error("cannot tell which GPUs there are: the process that asked the driver {0}")]
    Child(String),
}

/// Asks the driver in a child process: `executable` with [`PROBE_ARGUMENT`] has to print
/// [`answer_probe`]. Blocks for 60 s at most.
///
/// # Errors
///
/// When it cannot be told; a machine without a GPU is an answer, [`Probe::None`].
pub fn probe(executable: &Path) -> Result<Probe, ProbeError> {
    let spawn = |source| ProbeError::Spawn {
        program: executable.display().to_string(),
        source,
    };
    let child = duct::cmd(executable.to_path_buf(), [PROBE_ARGUMENT])
        .stdin_null()
        .stdout_capture()
        .stderr_capture()
        .unchecked()
        .start()
        .map_err(spawn)?;
    let Some(output) = child.wait_timeout(PROBE_PATIENCE).map_err(spawn)? else {
        // Not waited for: a process that hangs in the driver may not even end by SIGKILL.
        let _ = child.kill();
        let seconds = PROBE_PATIENCE.as_secs();
        return Err(ProbeError::Child(format!("did not end within {seconds} s")));
    };
    match serde_json::from_slice::<Answer>(&output.stdout) {
        Ok(Answer::Told(probe)) => Ok(probe),
        Ok(Answer::Untold { error }) => Err(ProbeError::Driver(error)),
        Err(_) => {
            let words = String::from_utf8_lossy(&output.stderr);
            let last = words.lines().rev().find(|line| !line.trim().is_empty());
            Err(ProbeError::Child(format!(
                "gave no answer ({}){}",
                output.status,
                last.map_or_else(String::new, |line| format!(": {}", line.trim()))
            )))
        }
    }
}

/// What the child prints.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Answer {
    Told(Probe),
    Untold { error: String },
}

/// The child's side of [`probe`]: asks the driver in this process and returns one JSON document to
/// print on standard output.
pub fn answer_probe() -> String {
    let answer = match probe_here() {
        Ok(probe) => Answer::Told(probe),
        Err(error) => Answer::Untold { error },
    };
    serde_json::to_string(&answer).unwrap_or_default()
}

/// Asks the driver in this process. cudarc panics when the driver lacks a function; that is
/// caught, but a driver that crashes takes this process with it: use [`probe`].
///
/// # Errors
///
/// What the driver said, or which function it lacks.
pub fn probe_here() -> Result<Probe, String> {
    std::panic::catch_unwind(ask_driver).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(text.unwrap_or_else(|| "the driver's library is unfit".into()))
    })
}

fn ask_driver() -> Result<Probe, String> {
    let none = |why: &str| Ok(Probe::None { why: why.into() });
    // SAFETY: loads the driver's library, whose initialisers we have to trust like any program
    // that uses CUDA.
    if !unsafe { sys::is_culib_present() } {
        return none("no CUDA driver (libcuda) on this machine");
    }
    match result::init() {
        Ok(()) => {}
        Err(result::DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => {
            return none("the CUDA driver sees no device");
        }
        Err(error) => return Err(said("cuInit", error)),
    }
    let mut version = 0;
    // SAFETY: the function writes one int to a place that outlives the call.
    let answer = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    answer.result().map_err(|e| said("cuDriverGetVersion", e))?;
    let count = result::device::get_count().map_err(|e| said("cuDeviceGetCount", e))?;
    if count == 0 {
        return none("the CUDA driver sees no device");
    }
    let gpus: Result<_, _> = (0..count).map(describe).collect();
    let version = version.unsigned_abs();
    Ok(Probe::Gpus {
        driver: (version / 1000, version % 1000 / 10),
        gpus: gpus?,
    })
}

fn describe(index: i32) -> Result<Gpu, String> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let device = result::device::get(index).map_err(|e| said("cuDeviceGet", e))?;
    let name = result::device::get_name(device).map_err(|e| said("cuDeviceGetName", e))?;
    // SAFETY (all three): `device` comes from cuDeviceGet.
    let total = unsafe { result::device::total_mem(device) };
    let major = unsafe { result::device::get_attribute(device, MAJOR) };
    let minor = unsafe { result::device::get_attribute(device, MINOR) };
    let attribute = |value: Result<i32, result::DriverError>| match value {
        Ok(value) => Ok(value.unsigned_abs()),
        Err(error) => Err(said("cuDeviceGetAttribute", error)),
    };
    Ok(Gpu {
        index: index.unsigned_abs(),
        name,
        uuid: uuid(device),
        total_bytes: total.map_err(|e| said("cuDeviceTotalMem", e))? as u64,
        capability: (attribute(major)?, attribute(minor)?),
    })
}

/// The identifier, as `nvidia-smi -L` prints it. Newer drivers may lack this old function.
fn uuid(device: sys::CUdevice) -> Option<String> {
    let asked = std::panic::catch_unwind(|| result::device::get_uuid(device));
    let bytes = asked.ok()?.ok()?.bytes;
    let hex = |range: std::ops::Range<usize>| -> String {
        let digits = bytes[range]
            .iter()
            .map(|byte| format!("{:02x}", *byte as u8));
        digits.collect()
    };
    let parts = [hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)];
    Some(format!("GPU-{}", parts.join("-")))
}

/// The error's name. Not its text: asking the driver for that needs two more of its functions.
fn said(function: &str, error: result::DriverError) -> String {
    format!("{function} returned {:?}", error.0)
}

/// The devices that a repro would see without us: the words for `CUDA_VISIBLE_DEVICES`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible(Vec<String>);

impl Visible {
    /// From the value of `CUDA_VISIBLE_DEVICES`: numbers, `GPU-…` and `MIG-…` identifiers, kept as
    /// written. As for CUDA, the first word that is none of these hides itself and all after it.
    pub fn from_variable(value: &str) -> Self {
        let words = value.split(',').map(str::trim);
        Self(
            words
                .take_while(|word| is_device(word))
                .map(str::to_owned)
                .collect(),
        )
    }

    /// From what the driver shows when the variable is not set.
    pub fn from_probe(probe: &Probe) -> Self {
        match probe {
            Probe::Gpus { gpus, .. } => {
                Self(gpus.iter().map(|gpu| gpu.index.to_string()).collect())
            }
            Probe::None { .. } => Self(Vec::new()),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

fn is_device(word: &str) -> bool {
    let number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    number || word.starts_with("GPU-") || word.starts_with("MIG-")
}

/// Why the GPUs cannot be shared among so many slots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DivideError {
    /// There are fewer GPUs than slots.
    #[error(
        "{jobs} jobs cannot share {gpus} GPU(s): use --jobs {gpus}, or set CUDA_VISIBLE_DEVICES= (empty) if the command needs no GPU"
    )]
    TooFew {
        /// Slots.
        jobs: usize,
        /// Visible GPUs.
        gpus: usize,
    },
    /// A device is named twice, so two slots would disturb each other.
    #[error("CUDA_VISIBLE_DEVICES names {device} twice: name each GPU once")]
    Twice {
        /// The word.
        device: String,
    },
}

/// Each slot's `CUDA_VISIBLE_DEVICES`; `None` leaves the variable as it is.
///
/// One slot has every GPU. Several get contiguous shares of equal size, so that trials are alike
/// whichever slot they run in; GPUs that do not go round stay unused. Without a GPU nothing is set.
///
/// # Errors
///
/// Fewer GPUs than slots, or a GPU named twice. The text names the remedy.
pub fn divide(visible: &Visible, jobs: usize) -> Result<Vec<Option<String>>, DivideError> {
    let devices = &visible.0;
    if jobs <= 1 || devices.is_empty() {
        return Ok(vec![None; jobs]);
    }
    let twice = (1..devices.len()).find(|&i| devices[..i].contains(&devices[i]));
    if let Some(i) = twice {
        let device = devices[i].clone();
        return Err(DivideError::Twice { device });
    }
    let share = devices.len() / jobs;
    if share == 0 {
        let gpus = devices.len();
        return Err(DivideError::TooFew { jobs, gpus });
    }
    let shares = devices.chunks_exact(share).take(jobs);
    Ok(shares.map(|share| Some(share.join(","))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(value: &str, jobs: usize) -> Vec<Option<String>> {
        divide(&Visible::from_variable(value), jobs).unwrap()
    }

    fn set(words: &[&str]) -> Vec<Option<String>> {
        words.iter().map(|word| Some((*word).to_owned())).collect()
    }

    #[test]
    fn gpus_are_shared_in_equal_contiguous_parts() {
        assert_eq!(shares("0,1,2,3", 1), [None]);
        assert_eq!(shares("0,1,2,3", 2), set(&["0,1", "2,3"]));
        assert_eq!(shares("4,7,5", 2), set(&["4", "7"]));
        assert_eq!(shares("0,1,2,3,4,5,6,7", 3), set(&["0,1", "2,3", "4,5"]));
        assert_eq!(
            shares("GPU-8932f937, MIG-GPU-1/3/0", 2),
            set(&["GPU-8932f937", "MIG-GPU-1/3/0"])
        );
    }

    #[test]
    fn without_a_gpu_the_variable_is_left_alone() {
        for hidden in ["", "-1", "NoDevFiles", "-1,0"] {
            assert_eq!(shares(hidden, 3), [None, None, None]);
        }
        assert_eq!(Visible::from_variable("0,-1,2").count(), 1);
    }

    #[test]
    fn too_many_jobs_are_an_error_with_its_remedy() {
        let error = divide(&Visible::from_variable("0,1"), 3).unwrap_err();
        assert_eq!(error, DivideError::TooFew { jobs: 3, gpus: 2 });
        assert!(error.to_string().contains("--jobs 2"));
        let error = divide(&Visible::from_variable("1,1"), 2).unwrap_err();
        assert_eq!(error, DivideError::Twice { device: "1".into() });
    }

    #[test]
    fn every_share_is_disjoint_and_alike() {
        for gpus in 1..=16_usize {
            let value: Vec<String> = (0..gpus).map(|gpu| gpu.to_string()).collect();
            for jobs in 2..=gpus {
                let shares = shares(&value.join(","), jobs);
                assert_eq!(shares.len(), jobs);
                let parts: Vec<Vec<&str>> = shares
                    .iter()
                    .map(|share| share.as_ref().unwrap().split(',').collect())
                    .collect();
                assert!(parts.iter().all(|part| part.len() == gpus / jobs));
                let all: std::collections::BTreeSet<_> = parts.iter().flatten().collect();
                assert_eq!(all.len(), jobs * (gpus / jobs));
            }
        }
    }
}
