//! Training: settings, the loop, optimisers, events and observers, checkpoints.
//!
//! [`TrainParams`] (anything may be left out) become a [`TrainPlan`] (checked, complete), which a
//! [`Trainer`] carries out. [`Event`]s go to [`Observer`]s, any of which may stop the run.

mod coordinates;
mod data;
mod evaluate;
mod event;
mod init;
mod optimise;
mod params;
mod plan;
mod trainer;

pub use coordinates::Coordinates;
pub use data::Data;
pub use event::{Control, Evaluated, Event, Observer, Outcome, Updated};
pub use params::{Form, Init, Optimiser, Regulariser, Schedule, TrainParams};
pub use plan::TrainPlan;
pub use trainer::Trainer;
