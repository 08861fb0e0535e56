//! The search for the settings of a run: trials that are compared on held-out rows and continued, the best ones for longer.
//!
//! A *trial* is a [`Setting`]; it advances in *stages*, each of which continues its checkpoint. All trials of a stage get
//! the same work, by estimate: seconds on one thread, which follow from sizes and not from the clock. The better part goes on to
//! the next stage, which is twice as long, and is joined by variants of the best trial, which start from what that has learnt: twice as many
//! hidden units, another penalty. The rate of learning stays constant; the best two trials end with an extra stage in which
//! it falls to zero. Their likelihood is then estimated from both sides, and a model whose estimate converges is preferred.
//!
//! | file | what it holds |
//! |---|---|
//! | `setting.rs` | what is tried first, and the variants of a trial |
//! | `work.rs` | the estimated time of updates and annealings |
//! | `score.rs` | the log-likelihood of held-out rows |
//! | `trials.rs` | records, checkpoints and models of the trials, in a folder or in memory |
//! | `stage.rs` | one stage of one trial |
//! | `search.rs` | which trials go on, and which model is the result |

mod score;
mod search;
mod setting;
mod stage;
mod trials;
mod work;

pub use score::Method;
pub use search::{Finalist, Search, TuneParams, Tuned, hold_out};
pub use setting::Setting;
pub use stage::Watch;
pub use trials::{Origin, Record, Stage, Trials};
pub use work::Division;
