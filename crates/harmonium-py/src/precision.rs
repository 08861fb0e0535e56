//! Single and double precision: one name for what exists in both, and one expression for either.

use crate::error::value;
use harmonium::train::Data;
use harmonium::{Coupling, Layer, Member, Real, Result};
use ndarray::Array2;
use numpy::{Element, PyReadonlyArray2};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// The same thing in either precision.
pub(crate) enum Precision<S, D> {
    Single(S),
    Double(D),
}

pub(crate) type AnyMachine = Precision<Arc<harmonium::Machine<f32>>, Arc<harmonium::Machine<f64>>>;
pub(crate) type AnyData = Precision<Data<f32>, Data<f64>>;
pub(crate) type AnyChains = Precision<Mutex<harmonium::Chains<f32>>, Mutex<harmonium::Chains<f64>>>;

/// `$body` with `$x` for whichever of the two it is.
macro_rules! each {
    ($which:expr, $x:ident => $body:expr) => {
        match $which {
            $crate::precision::Precision::Single($x) => $body,
            $crate::precision::Precision::Double($x) => $body,
        }
    };
}
pub(crate) use each;

/// A number type of machines in Python, with the variants that hold values of it.
pub(crate) trait Precise: Real + Element {
    /// As NumPy names it.
    const DTYPE: &'static str;
    fn machine(machine: Arc<harmonium::Machine<Self>>) -> AnyMachine;
    fn data(data: Data<Self>) -> AnyData;
    fn data_of(data: &AnyData) -> Option<&Data<Self>>;
    fn chains(chains: harmonium::Chains<Self>) -> AnyChains;
    fn chains_of(chains: &AnyChains) -> Option<&Mutex<harmonium::Chains<Self>>>;
}

macro_rules! precise {
    ($type:ty, $variant:ident, $name:literal) => {
        impl Precise for $type {
            const DTYPE: &'static str = $name;
            fn machine(machine: Arc<harmonium::Machine<Self>>) -> AnyMachine {
                Precision::$variant(machine)
            }
            fn data(data: Data<Self>) -> AnyData {
                Precision::$variant(data)
            }
            fn data_of(data: &AnyData) -> Option<&Data<Self>> {
                if let Precision::$variant(data) = data { Some(data) } else { None }
            }
            fn chains(chains: harmonium::Chains<Self>) -> AnyChains {
                Precision::$variant(Mutex::new(chains))
            }
            fn chains_of(chains: &AnyChains) -> Option<&Mutex<harmonium::Chains<Self>>> {
                if let Precision::$variant(chains) = chains { Some(chains) } else { None }
            }
        }
    };
}
precise!(f32, Single, "float32");
precise!(f64, Double, "float64");

/// The precision that NumPy's name of a dtype stands for.
pub(crate) fn named(dtype: &str) -> PyResult<Precision<(), ()>> {
    match dtype {
        f32::DTYPE => Ok(Precision::Single(())),
        f64::DTYPE => Ok(Precision::Double(())),
        other => Err(value("dtype", format!("expected float32 or float64, got {other}"))),
    }
}

/// An array in the precision of a machine.
pub(crate) fn array_for<T: Precise>(
    _: &harmonium::Machine<T>,
    what: &str,
    x: &Bound<'_, PyAny>,
) -> PyResult<Array2<T>> {
    let array = x.extract::<PyReadonlyArray2<'_, T>>();
    let array = array.map_err(|_| value(what, format!("expected a 2-d array of {}", T::DTYPE)))?;
    Ok(array.as_array().to_owned())
}

/// The machine with its numbers in the other precision, or in its own.
pub(crate) fn cast<T: Real, S: Real>(machine: &harmonium::Machine<T>) -> Result<harmonium::Machine<S>> {
    let cast = |a: &Array2<T>| a.mapv(|x| S::of(x.f64()));
    let members = machine.members().iter().map(|m| {
        let layer = Layer::with_params(m.layer.kind(), cast(m.layer.params()))?;
        Ok(Member { name: m.name.clone(), role: m.role, layer })
    });
    let couplings = machine.couplings().iter().map(|c| {
        let (a, b) = c.ends();
        let coupling = Coupling::new(a, b, cast(c.w()))?;
        match c.mask() {
            Some(mask) => coupling.with_mask(mask.clone()),
            None => Ok(coupling),
        }
    });
    harmonium::Machine::new(members.collect::<Result<_>>()?, couplings.collect::<Result<_>>()?)
}
