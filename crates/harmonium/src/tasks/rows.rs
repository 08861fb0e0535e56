//! Conversion of arrays, bits and lists to rows of data.

use crate::train::Data;
use crate::{Batch, Bits, Error, Layer, Machine, Real, Result, Role, States};
use ndarray::{Array2, ArrayView2, Axis};
use std::borrow::Cow;

/// A number of an array of rows. NaN stands for a missing entry.
pub trait Number: Copy {
    /// The number in double precision.
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl Number for $type {
            fn number(self) -> f64 {
                self as f64
            }
        })*
    };
}
numbers!(f32, f64, u8, i8, u16, i16, u32, i32, u64, i64, usize, isize);

impl Number for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

/// Types that can be converted to rows of data.
///
/// Arrays have the columns of all visible and conditioning layers side by side, in the machine's order, a number for each unit;
/// those of the class ([`Machine::class_layer`]) may be left out. NaN is a missing entry, and where a value of a binary layer
/// lies between 0 and 1 the layer's values are [soft](Layer::check_data).
pub trait IntoData<'a, T: Real> {
    /// The rows converted for `machine`.
    ///
    /// # Errors
    /// Another number of columns, or values that a layer does not allow.
    fn into_data(self, machine: &Machine<T>) -> Result<Cow<'a, Data<T>>>;
}

impl<'a, T: Real> IntoData<'a, T> for &'a Data<T> {
    fn into_data(self, _: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        Ok(Cow::Borrowed(self))
    }
}

impl<'a, T: Real> IntoData<'a, T> for Data<T> {
    fn into_data(self, _: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        Ok(Cow::Owned(self))
    }
}

impl<'a, T: Real> IntoData<'a, T> for States<T> {
    fn into_data(self, _: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        Ok(Cow::Owned(Data::new(self)))
    }
}

impl<'a, T: Real> IntoData<'a, T> for &States<T> {
    fn into_data(self, machine: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        self.clone().into_data(machine)
    }
}

impl<'a, T: Real> IntoData<'a, T> for &Bits {
    fn into_data(self, machine: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        machine.data(vec![Batch::Bits(self.clone())])?.into_data(machine)
    }
}

/// For each row the units that are on, in one layer of bits.
impl<'a, T: Real> IntoData<'a, T> for &[Vec<usize>] {
    fn into_data(self, machine: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        let given = machine.with_role(Role::Visible).next();
        let units = given.map_or(0, |l| machine.layer(l).len());
        let mut bits = Bits::zeros(self.len(), units);
        for (r, row) in self.iter().enumerate() {
            for &j in row {
                if j >= units {
                    return Err(Error::shape(format!("units of row {r}"), format!("below {units}"), j));
                }
                bits.set(r, j, true);
            }
        }
        (&bits).into_data(machine)
    }
}

impl<'a, T: Real> IntoData<'a, T> for &Vec<Vec<usize>> {
    fn into_data(self, machine: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        self.as_slice().into_data(machine)
    }
}

impl<'a, T: Real, A: Number> IntoData<'a, T> for &Array2<A> {
    fn into_data(self, machine: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        self.view().into_data(machine)
    }
}

impl<'a, T: Real, A: Number> IntoData<'a, T> for ArrayView2<'_, A> {
    fn into_data(self, machine: &Machine<T>) -> Result<Cow<'a, Data<T>>> {
        let given: Vec<usize> =
            (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden).collect();
        let units = |layers: &[usize]| layers.iter().map(|&l| machine.layer(l).len()).sum::<usize>();
        let unlabelled: Vec<usize> =
            given.iter().copied().filter(|&l| Some(l) != machine.class_layer()).collect();
        let held = if self.ncols() == units(&given) { given } else { unlabelled };
        if self.ncols() != units(&held) {
            return Err(Error::shape("columns of the rows", units(&held), self.ncols()));
        }
        let mut states = States::empty(machine.len(), self.nrows());
        let (mut first, mut missing) = (0, Vec::new());
        for l in held {
            let layer = machine.layer(l);
            let end = first + layer.len();
            let values = self.slice_axis(Axis(1), (first..end).into()).mapv(Number::number);
            let (batch, known) = batch(layer, values).map_err(|e| {
                Error::value(format!("layer {}", machine.members()[l].name), "its values", e)
            })?;
            states.set(l, batch);
            missing.extend(known.map(|known| (l, known)));
            first = end;
        }
        let mut data = Data::new(states);
        for (l, known) in missing {
            data = data.with_known(l, known)?;
        }
        Ok(Cow::Owned(data))
    }
}

/// A layer's values as a batch, and which of them are known where some are NaN.
fn batch<T: Real>(layer: &Layer<T>, mut values: Array2<f64>) -> Result<(Batch<T>, Option<Bits>)> {
    let known = values.iter().any(|x| x.is_nan()).then(|| {
        let (rows, cols) = values.dim();
        Bits::from_fn(rows, cols, |r, j| !values[[r, j]].is_nan())
    });
    if known.is_some() {
        // Any allowed value will do, because it is never read.
        let stand_in = layer.kind().placeholder();
        values.mapv_inplace(|x| if x.is_nan() { stand_in } else { x });
    }
    let soft = layer.kind().takes_soft_data()
        && values.iter().any(|x| (0.0..=1.0).contains(x) && x.fract() != 0.0);
    let batch = match soft {
        true => Batch::Reals(values.mapv(T::of)),
        false => layer.batch(values.view())?,
    };
    layer.check_data(&batch)?;
    Ok((batch, known))
}
