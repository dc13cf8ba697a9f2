//! What everything that keeps a redb file needs, on machines and on the bus alike.

mod beside;
mod disk;
mod image;
mod overlay;
#[cfg(test)]
mod tests;

pub use beside::beside;
pub use disk::{Disk, RealDisk};
pub use image::Image;
pub use overlay::Overlay;
