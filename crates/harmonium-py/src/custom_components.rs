//! Custom components of a run as functions of Python: learning rate, step rule, estimator, and what acts on the gradient.

use crate::machine::Machine;
use crate::precision::Precise;
use crate::rows::Rows;
use crate::work::Link;
use harmonium::estimate::{Context, Info, NegativePhase};
use harmonium::train::{Data, Gradient, Hooks, StepRule};
use harmonium::{Archive, Error, Parameters, Phase, Result};
use ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::Arc;

/// A function of Python that other threads hold.
type Function = Arc<Py<PyAny>>;

/// The functions of a run, each where it is set. Parameters go to them and come back as lists of arrays, layers first.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CustomComponents {
    /// Update → learning rate.
    rate: Option<Py<PyAny>>,
    /// Gradient, rate → step.
    step_rule: Option<Py<PyAny>>,
    /// Machine, rows, moments of the positive phase, seed, update → moments.
    estimator: Option<Py<PyAny>>,
    /// Gradient, machine → what is added to it, or nothing.
    gradient: Option<Py<PyAny>>,
}

impl CustomComponents {
    /// The parts of the library that call these functions, on the thread that waits for the run.
    pub(crate) fn hooks<'d, T: Precise>(self, link: &'d Link<'_>) -> Hooks<'d, T> {
        let mut hooks = Hooks::default();
        if let Some(rate) = self.rate.map(Arc::new) {
            // Without an answer the run is over; no number is as good as any.
            hooks = hooks.rate(move |update| {
                let rate = rate.clone();
                link.call(move |py| rate.call1(py, (update,))?.extract(py)).unwrap_or(f64::NAN)
            });
        }
        if let Some(rule) = self.step_rule {
            hooks = hooks.step_rule(PythonFunction { link, function: Arc::new(rule) });
        }
        if let Some(estimator) = self.estimator {
            hooks = hooks.estimator(PythonFunction { link, function: Arc::new(estimator) });
        }
        if let Some(function) = self.gradient.map(Arc::new) {
            hooks = hooks.gradient(move |gradient: &mut Gradient<T>, machine| {
                let added = on_gradient(link, &function, gradient.dense(), machine)?;
                added.iter().for_each(|added| gradient.add(T::one(), added));
                Ok(())
            });
        }
        hooks
    }
}

fn on_gradient<T: Precise>(
    link: &Link<'_>,
    function: &Function,
    gradient: Parameters<T>,
    machine: &harmonium::Machine<T>,
) -> Result<Option<Parameters<T>>> {
    let (function, machine) = (function.clone(), Machine::from(machine.clone()));
    let call = move |py: Python<'_>| {
        let shapes = shapes(&gradient);
        let answer = function.call1(py, (list(py, gradient)?, machine))?;
        (!answer.is_none(py)).then(|| parameters(answer.bind(py), &shapes)).transpose()
    };
    link.call(call).ok_or(STOPPED)
}

/// What is said where a function gave no answer; the exception it raised is what people see.
const STOPPED: Error = Error::Stopped { what: "a custom component of the run" };

/// A step rule or an estimator: its function, which may have `save` and `load` for what it remembers.
struct PythonFunction<'a> {
    link: &'a Link<'a>,
    function: Function,
}

impl<T: Precise> StepRule<T> for PythonFunction<'_> {
    fn step(&mut self, gradient: &mut Parameters<T>, rate: f64) -> Result<()> {
        let (function, arrays) = (self.function.clone(), gradient.clone());
        let call = move |py: Python<'_>| {
            let shapes = shapes(&arrays);
            parameters(function.call1(py, (list(py, arrays)?, rate))?.bind(py), &shapes)
        };
        *gradient = self.link.call(call).ok_or(STOPPED)?;
        Ok(())
    }

    fn clear(&mut self) {
        let function = self.function.clone();
        self.link.call(move |py| function.call_method0(py, "clear").map(drop));
    }

    fn save(&self, archive: &mut Archive) {
        self.save_state(archive);
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        self.load_state(archive)
    }
}

impl<T: Precise> NegativePhase<T> for PythonFunction<'_> {
    fn name(&self) -> &'static str {
        "own"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let function = self.function.clone();
        let machine = context.model.machine();
        let mut data = Data::new(context.data.clone());
        if let Some(wts) = context.wts {
            data = data.with_weights(wts.to_vec())?;
        }
        let (rows, positive) = (Rows::new(machine, data), context.positive.parameters());
        let (machine, seed, update) = (Machine::from(machine.clone()), context.seed, context.update);
        let call = move |py: Python<'_>| {
            let shapes = shapes(&positive);
            let positive = list(py, positive)?;
            let answer = function.call1(py, (machine, rows, positive, seed, update))?;
            parameters(answer.bind(py), &shapes)
        };
        *out.parameters_mut() = self.link.call(call).ok_or(STOPPED)?;
        Ok(Info::default())
    }

    fn save(&self, archive: &mut Archive) {
        self.save_state(archive);
    }

    fn load(&mut self, archive: &Archive) -> Result<()> {
        self.load_state(archive)
    }
}

impl PythonFunction<'_> {
    /// Puts the arrays of numbers that `save` returns by name, with their shapes.
    fn save_state(&self, archive: &mut Archive) {
        let function = self.function.clone();
        let call = move |py: Python<'_>| {
            let saved = function.call_method0(py, "save")?;
            let mut out: Vec<(String, Vec<f64>, Vec<u64>)> = Vec::new();
            for (name, entry) in saved.bind(py).cast::<PyDict>()? {
                let (numbers, shape) = entry.extract::<(PyReadonlyArray1<'_, f64>, Vec<u64>)>()?;
                out.push((name.extract()?, numbers.as_array().to_vec(), shape));
            }
            Ok(out)
        };
        for (name, numbers, shape) in self.link.call(call).into_iter().flatten() {
            archive.put_f64s(format!("state/{name}"), &numbers);
            archive.put_u64s(format!("shape/{name}"), &shape);
        }
    }

    fn load_state(&self, archive: &Archive) -> Result<()> {
        let (state, mut entries) = (archive.below("state"), Vec::new());
        for name in state.tensors().keys() {
            entries.push((name.clone(), state.f64s(name)?, archive.u64s(&format!("shape/{name}"))?));
        }
        let function = self.function.clone();
        let call = move |py: Python<'_>| {
            let dict = PyDict::new(py);
            for (name, numbers, shape) in entries {
                let shape = PyTuple::new(py, shape)?;
                dict.set_item(name, PyArray1::from_vec(py, numbers).call_method1("reshape", (shape,))?)?;
            }
            function.call_method1(py, "load", (dict,)).map(drop)
        };
        self.link.call(call).ok_or(STOPPED)
    }
}

/// The arrays of parameters, layers first.
fn list<T: Precise>(py: Python<'_>, parameters: Parameters<T>) -> PyResult<Bound<'_, PyList>> {
    let Parameters { layers, couplings } = parameters;
    PyList::new(py, layers.into_iter().chain(couplings).map(|a| a.into_pyarray(py)))
}

/// Shapes of the arrays, and how many are of layers.
fn shapes<T: Precise>(parameters: &Parameters<T>) -> (Vec<(usize, usize)>, usize) {
    (parameters.arrays().map(Array2::dim).collect(), parameters.layers.len())
}

/// Parameters of these shapes from a list of arrays.
fn parameters<T: Precise>(
    arrays: &Bound<'_, PyAny>,
    (shapes, layers): &(Vec<(usize, usize)>, usize),
) -> PyResult<Parameters<T>> {
    let arrays: Vec<PyReadonlyArray2<'_, T>> = arrays.extract()?;
    if arrays.len() != shapes.len() || arrays.iter().zip(shapes).any(|(a, s)| a.as_array().dim() != *s) {
        return Err(PyValueError::new_err("a custom component of a run gave arrays of other shapes"));
    }
    // In the library's own order of numbers, whatever the array's.
    let owned = |a: &PyReadonlyArray2<'_, T>| a.as_array().as_standard_layout().into_owned();
    let mut layers_first: Vec<_> = arrays.iter().map(owned).collect();
    let couplings = layers_first.split_off(*layers);
    Ok(Parameters { layers: layers_first, couplings })
}
