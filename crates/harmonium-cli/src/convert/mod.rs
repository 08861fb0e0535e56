//! Models in the files of other programs, read and written.

mod adabm;
#[cfg(feature = "hdf5")]
mod hdf5;
mod npz;

use crate::error::{Failure, Result};
use clap::ValueEnum;
use harmonium::{Coupling, Kind, Layer, Machine, Member, Role};
use harmonium_data::Schema;
use ndarray::{Array1, Array2};
use std::path::Path;

/// A format of model files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelFormat {
    /// Our own: any machine, .safetensors
    Harmonium,
    /// npz with components_, intercept_visible_, intercept_hidden_: binary RBMs
    Sklearn,
    /// npz with w, b, c: binary RBMs
    Wbc,
    /// Text with lines `J i j a b x` and `h i a x`: fully visible Potts machines
    Adabmdca,
    /// HDF5 of the Python package rbms: binary, spin and Potts RBMs
    Rbms,
    /// HDF5 of RestrictedBoltzmannMachines.jl: RBMs of all its layers that we have
    RbmJl,
}

impl ModelFormat {
    /// The format that a file's ending stands for when it is written.
    pub(crate) fn of_ending(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_lowercase().as_str() {
            "safetensors" => Self::Harmonium,
            "npz" => Self::Sklearn,
            "dat" | "txt" => Self::Adabmdca,
            "h5" | "hdf5" => Self::Rbms,
            _ => return None,
        })
    }
}

/// A machine from another program, with the names of its columns where the file has some.
pub(crate) struct Foreign {
    pub(crate) machine: Machine<f64>,
    pub(crate) schema: Option<Schema>,
}

impl From<Machine<f64>> for Foreign {
    fn from(machine: Machine<f64>) -> Self {
        Self { machine, schema: None }
    }
}

/// Reads the file of another program; its contents tell which.
pub(crate) fn read(path: &Path) -> Result<Foreign> {
    match ModelFormat::of_ending(path) {
        Some(ModelFormat::Sklearn) => npz::read(path).map(Into::into),
        Some(ModelFormat::Adabmdca) => adabm::read(path),
        Some(ModelFormat::Rbms) => read_hdf5(path),
        _ => Err(Failure::new(format!(
            "{}: this is not a model file; expected .safetensors, .npz, .h5 or .dat",
            path.display()
        ))),
    }
}

/// The machine in single precision, in which every command works; numbers beyond it are refused.
pub(crate) fn single(machine: &Machine<f64>) -> Result<Machine> {
    let single: Machine = machine.cast();
    match (machine.check(), single.check()) {
        (Err(e), _) => Err(e.into()),
        (_, Ok(())) => Ok(single),
        (_, Err(e)) => Err(Failure::new(format!(
            "{e}: the file has numbers beyond single precision (at most {:.1e}), in which models are used",
            f32::MAX
        ))),
    }
}

#[cfg(feature = "hdf5")]
fn read_hdf5(path: &Path) -> Result<Foreign> {
    hdf5::read(path)
}
#[cfg(not(feature = "hdf5"))]
fn read_hdf5(path: &Path) -> Result<Foreign> {
    Err(no_hdf5(path))
}
#[cfg(not(feature = "hdf5"))]
fn no_hdf5(path: &Path) -> Failure {
    Failure::new(format!(
        "{}: HDF5 needs the cargo feature `hdf5`; build again with `--features hdf5`",
        path.display()
    ))
}

/// The bytes of a machine in a format of another program.
pub(crate) fn bytes(
    machine: &Machine<f64>,
    schema: &Schema,
    format: ModelFormat,
    path: &Path,
) -> Result<Vec<u8>> {
    match format {
        ModelFormat::Harmonium => Err(Failure::new("our own format is written by the library")),
        ModelFormat::Sklearn | ModelFormat::Wbc => npz::bytes(machine, format),
        ModelFormat::Adabmdca => adabm::bytes(machine, schema),
        #[cfg(feature = "hdf5")]
        ModelFormat::Rbms | ModelFormat::RbmJl => hdf5::bytes(machine, format, path),
        #[cfg(not(feature = "hdf5"))]
        ModelFormat::Rbms | ModelFormat::RbmJl => Err(no_hdf5(path)),
    }
}

/// An RBM of two layers with these parameters.
fn rbm(v: Layer<f64>, h: Layer<f64>, w: Array2<f64>) -> Result<Machine<f64>> {
    let member = |name: &str, role, layer| Member { name: name.into(), role, layer };
    let members = vec![member("v", Role::Visible, v), member("h", Role::Hidden, h)];
    Ok(Machine::new(members, vec![Coupling::new(0, 1, w)?])?)
}

/// A layer of units whose only parameter is θ.
fn layer(kind: Kind, theta: Array1<f64>) -> Result<Layer<f64>> {
    Ok(Layer::with_params(kind, theta.insert_axis(ndarray::Axis(0)))?)
}

/// Visible and hidden layer and weights of an RBM.
type Parts<'a> = (&'a Layer<f64>, &'a Layer<f64>, &'a Array2<f64>);

/// The parts of an RBM; what another machine is, in words.
fn parts(machine: &Machine<f64>) -> Result<Parts<'_>, String> {
    let roles: Vec<Role> = machine.members().iter().map(|m| m.role).collect();
    match (&roles[..], machine.couplings()) {
        ([Role::Visible, Role::Hidden], [c]) if c.ends() == (0, 1) => {
            Ok((machine.layer(0), machine.layer(1), c.w()))
        }
        _ => Err(format!(
            "the format holds RBMs of one visible and one hidden layer; this machine has {} layers and {} couplings",
            machine.len(),
            machine.couplings().len()
        )),
    }
}
