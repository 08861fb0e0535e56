//! Train, sample and judge Boltzmann machines.
#![forbid(unsafe_code)]
