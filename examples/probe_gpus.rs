//! Prints what the CUDA driver says of this machine, as `fbisect` asks it: one JSON document.
//!
//! ```text
//! cargo run --example probe_gpus
//! ```

#![expect(clippy::print_stdout, reason = "the answer is the output")]

fn main() {
    println!("{}", fbisect::executors::devices::answer_probe());
}
