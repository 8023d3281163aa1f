//! demo
use super::args::DemoArgs;
/// x
pub fn run(_: &DemoArgs) -> crate::error::Result<u8> {
    Ok(0)
}
