//! Model files: a machine as one self-describing safetensors file, documented in `docs/FORMAT.md`.

mod describe;
mod read;
mod write;

pub use describe::{CouplingInfo, Description, LayerInfo, Precision, Provenance, inspect};

/// Name of the format in the file's metadata.
const FORMAT: &str = "harmonium model";
/// Newest version that is read, and the one that is written.
const VERSION: u32 = 1;
/// Most layers of a file: a bound on the memory a malicious file can demand, far above any machine in use.
const MAX_LAYERS: usize = 255;
