//! The command line: arguments, and one file a subcommand.

pub mod demo_world;
