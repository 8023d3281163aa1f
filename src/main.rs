//! The `fbisect` program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    fbisect::cli::main()
}
