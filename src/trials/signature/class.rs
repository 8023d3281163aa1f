//! From an exception's type and words to the class of a failure. The tables of this file are the
//! whole knowledge of what frameworks call things.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::SignatureClass as Class;

/// Compiles one of this room's own patterns.
pub(super) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a literal of this room, compiled by its tests")
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| regex($pattern));)*
    };
}

patterns! {
    OOM = r"(?i)\bout of memory\b|RESOURCE_EXHAUSTED|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED|can(?:'|no)t allocate memory|not enough memory: you tried|unable to allocate .* for an array|\bstd::bad_alloc\b";
    OOM_KILLER = r"Out of memory: Killed process|\boom[-_]kill|\bOOM[- ]?Killed\b";
    LOADER = r"DataLoader worker \(pid|in DataLoader worker process|DataLoader timed out";
    NCCL = r"\bNCCL (?:error|failure|communicator)|\bnccl(?:UnhandledCuda|System|Internal|Remote|InvalidUsage|InvalidArgument)\w*|collective operation timeout|[Gg]loo[/:\] ]|connectFullMesh failed|\bTCPStore\b|NCCL WARN";
    CHECKPOINT = r"Error\(s\) in loading state_dict|PytorchStreamReader failed|(?i)\bsafetensors?\b.*(?:error|invalid|corrupt|incomplete)|SafetensorError|\bcheckpoint\b.*(?:not found|does not exist|no such file|corrupt|mismatch)|no such file.*(?:checkpoint|\.ckpt\b|\.safetensors\b|\.pt\b|\.pth\b)|(?:missing|unexpected) keys?(?:\(s\))? in state_dict";
    IMPORT = r"undefined symbol:|error while loading shared libraries|cannot open shared object file|GLIBC(?:XX)?_[\d.]+' not found";
    BUILD = r"(?:^|\s)\S+:\d+(?::\d+)?: (?:fatal )?error: |^\S+\(\d+\): error: |^error(?:\[E\d+\]): |\bninja: build stopped|\bCMake Error\b|\bnvcc fatal\b|\bundefined reference to\b|Error (?:building|compiling objects for) extension|^error: command '.*' failed|^error: could not compile|Failed (?:to build|building wheel)|^collect2: error: ld returned";
    NAN = r"(?ix)
        \bloss\b (?:\s+(?:value|is|was|became|becomes|has\ become|went|turned|went\ to|now))* \s*[=:]?\s* (?:a\ )?(?:nan|-?inf(?:inity|inite)?|not\ finite|non-?finite|not\ a\ number)\b
      | \bnans?\b (?:\s+(?:loss|losses|values?|gradients?|weights?|outputs?|activations?|or\ infs?))* \s+ (?:was\ |were\ )?(?:detected|encountered|found|appeared)
      | \b(?:detected|encountered|found|contains?|produced|returned|got)\s+(?:an?\ |some\ )?nans?\b
      | \bnon-?finite\ (?:loss|grad|gradients?|values?|norm|parameters?)\b
    ";
    NOT_NAN = r"(?i)\b(?:no|not|without|zero|0|if|when|whether|avoids?|check(?:s|ing)? for|prevents?|unless)\s+(?:\w+\s+){0,2}nans?\b|\bnans?\b[\w ]*(?:detected|found)\s*[=:]\s*(?:0|false|no|none)\b";
    DEVICE_ASSERT = r"device-side assert triggered";
    CUDA_ERROR = r"\bCUDA (?:driver )?error\b|\bcudaError[A-Z]\w+|\bCUDA_ERROR_\w+|CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|\bHIP error\b|illegal memory access";
    ASSERTED = r"(?i)\bassertion\b.*\bfailed\b|\bCheck failed:";
    TOOLS = r"\b(?:ninja|cmake|nvcc|gcc|g\+\+|clang|make|cargo)\b";
    CHILD_DIED = r"\bdied with <Signals\.(SIG[A-Z]+)";
    VICTIM = r"(?i)connection (?:reset|closed|aborted) by peer|broken pipe|\bSIGTERM\b";
}

/// The last part of a dotted or `::`-separated type name.
pub(super) fn last_part(name: &str) -> &str {
    name.rsplit(['.', ':']).next().unwrap_or(name)
}

/// Types that say nothing beyond "it failed".
pub(super) fn is_catch_all(last: &str) -> bool {
    matches!(
        last,
        "RuntimeError" | "Exception" | "Error" | "XlaRuntimeError" | "JaxRuntimeError"
    )
}

/// The class of a failure with this exception type, if it has one, and these words.
pub(super) fn class_of(exception: Option<&str>, message: &str) -> Class {
    let last = exception.map_or("", last_part);
    match last {
        "ImportError" | "ModuleNotFoundError" => return Class::Import,
        "OutOfMemoryError" | "MemoryError" | "_ArrayMemoryError" | "bad_alloc" => {
            return Class::Oom;
        }
        "FloatingPointError" => return Class::Nan,
        "SyntaxError" | "IndentationError" | "TabError" | "CompilationError" => {
            return Class::Build;
        }
        "SafetensorError" | "UnpicklingError" => return Class::Checkpoint,
        "TimeoutExpired" => return Class::Hang,
        _ => {}
    }
    let asserted = matches!(last, "AssertionError" | "Failed");
    match class_of_words(message) {
        // A test's own words may speak of anything: only these two name what went wrong.
        Some(class @ (Class::Nan | Class::Oom)) => class,
        _ if last == "Failed" && message.starts_with("Timeout") => Class::Hang,
        _ if asserted => Class::Assertion,
        Some(class) => class,
        None if matches!(
            last,
            "DistBackendError" | "DistNetworkError" | "DistStoreError"
        ) =>
        {
            Class::Nccl
        }
        None if last == "CalledProcessError" && TOOLS.is_match(message) => Class::Build,
        None => Class::Other,
    }
}

/// The class that words alone name.
pub(super) fn class_of_words(words: &str) -> Option<Class> {
    if LOADER.is_match(words) {
        Some(Class::Loader)
    } else if OOM.is_match(words) {
        Some(Class::Oom)
    } else if NCCL.is_match(words) {
        Some(Class::Nccl)
    } else if CHECKPOINT.is_match(words) {
        Some(Class::Checkpoint)
    } else if IMPORT.is_match(words) {
        Some(Class::Import)
    } else if BUILD.is_match(words) {
        Some(Class::Build)
    } else if says_nan(words) {
        Some(Class::Nan)
    } else if DEVICE_ASSERT.is_match(words) || ASSERTED.is_match(words) {
        Some(Class::Assertion)
    } else if CUDA_ERROR.is_match(words) {
        Some(Class::Crash)
    } else {
        None
    }
}

/// Whether words say that something is not a number, rather than that nothing is.
pub(super) fn says_nan(words: &str) -> bool {
    words
        .lines()
        .any(|line| NAN.is_match(line) && !NOT_NAN.is_match(line))
}

/// Whether the kernel, a container or a batch system says that it killed for memory.
pub(super) fn says_oom_killer(line: &str) -> bool {
    OOM_KILLER.is_match(line)
}

/// The signal that a child process died of, where an exception's words tell.
pub(super) fn child_death(message: &str) -> Option<&str> {
    Some(CHILD_DIED.captures(message)?.get(1)?.as_str())
}

/// Whether this is what a failure elsewhere sets off: a collective that waits for a dead rank, a
/// connection that a dead rank closed, a launcher's or wrapper's summary.
pub(super) fn is_aftermath(class: Class, exception: Option<&str>, message: &str) -> bool {
    let wrapper = matches!(
        exception.map_or("", last_part),
        "ChildFailedError"
            | "ProcessExitedException"
            | "ProcessRaisedException"
            | "SignalException"
            | "CalledProcessError"
            | "BrokenPipeError"
            | "ConnectionResetError"
            | "ConnectionAbortedError"
            | "ConnectionRefusedError"
            | "KeyboardInterrupt"
            | "SystemExit"
            | "RayActorError"
            | "ActorDiedError"
    );
    class == Class::Nccl || wrapper || (class == Class::Other && VICTIM.is_match(message))
}

/// Whether the exception is a launcher's, which shows that there were several processes.
pub(super) fn is_launcher(exception: &str) -> bool {
    matches!(
        last_part(exception),
        "ChildFailedError" | "ProcessExitedException" | "ProcessRaisedException"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [
            &OOM,
            &OOM_KILLER,
            &LOADER,
            &NCCL,
            &CHECKPOINT,
            &IMPORT,
            &BUILD,
            &NAN,
            &NOT_NAN,
            &DEVICE_ASSERT,
            &CUDA_ERROR,
            &ASSERTED,
            &TOOLS,
            &CHILD_DIED,
            &VICTIM,
        ] {
            assert!(!pattern.as_str().is_empty());
        }
    }

    #[test]
    fn nan_is_told_from_talk_about_nan() {
        for yes in [
            "loss is nan",
            "step 40: loss=nan lr=0.1",
            "Loss: NaN",
            "Loss is NaN or inf",
            "NaN detected in layer 3",
            "found NaN in gradients",
            "Function 'MulBackward0' returned nan values in its 0th output.",
            "non-finite gradients",
            "loss is not finite",
        ] {
            assert!(says_nan(yes), "{yes}");
        }
        for no in [
            "no NaN detected",
            "nan detected: False",
            "NaNs found: 0",
            "checking for nan values, found nothing",
            "loss 0.31 nan_check=on",
            "loss information printed every 10 steps",
            "nanosecond timer found",
        ] {
            assert!(!says_nan(no), "{no}");
        }
    }

    #[test]
    fn types_are_told_by_their_last_part() {
        assert_eq!(last_part("torch.cuda.OutOfMemoryError"), "OutOfMemoryError");
        assert_eq!(last_part("std::bad_alloc"), "bad_alloc");
        assert_eq!(last_part("ValueError"), "ValueError");
    }
}
