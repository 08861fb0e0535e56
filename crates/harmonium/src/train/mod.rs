//! Training: settings, the loop, optimisers, events and observers, checkpoints.
//!
//! [`TrainParams`] (all fields optional) become a [`TrainPlan`] (checked, complete), which a [`Trainer`] carries out.
//! [`Event`]s go to [`Observer`]s, any of which may stop the run.

mod checkpoint;
mod coordinates;
mod cost;
mod data;
mod defaults;
mod em;
mod evaluate;
mod event;
mod floor;
mod gradient;
mod grow;
mod guard;
mod hooks;
mod init;
mod interruptible;
mod length;
mod lost_modes;
mod metrics;
mod mixing;
mod optimise;
mod params;
mod plan;
mod pretrain;
mod sides;
mod stack;
mod trainer;
mod update;
mod watch;
mod white;

pub(crate) use checkpoint::with_params;
pub use checkpoint::{CHECKPOINT_SECONDS, Checkpoints, Snapshots, params as checkpoint_params};
pub use coordinates::OffsetsAndScales;
pub use data::Data;
pub use defaults::{Draft, settings};
pub(crate) use evaluate::{annealed_log_z, likelihood_with, sample_rows};
pub use event::{Control, Evaluated, Event, Observer, Outcome, StopReason, Updated};
pub use floor::Floor;
pub use gradient::{Gradient, Reduce, Share};
pub(crate) use grow::{grown, resized};
pub use hooks::{Hooks, StepRule};
pub(crate) use init::has_only_bits;
pub use length::LeftOut;
pub(crate) use length::shuffled;
pub use metrics::{Metrics, RECORDED_UPDATES, object as event_object};
pub use params::{Coordinates, Init, Optimiser, Regulariser, Schedule, TrainParams};
pub use plan::TrainPlan;
pub use pretrain::{starts_from_levels, trainer};
pub use stack::Stack;
pub use trainer::Trainer;
pub use white::normal_log_density;
