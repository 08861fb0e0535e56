//! The memory of machines and of their states, asked before they are made.

use super::Machine;
use crate::units::Form;
use crate::{Error, Kind, Real, Result, memory};

/// Most states of a unit of counts.
const STATES: u32 = 1 << 24;

impl<T: Real> Machine<T> {
    /// Refuses a machine of layers of these kinds and numbers of units, joined at these pairs, that would not fit into memory.
    ///
    /// # Errors
    /// [`Error::Memory`] with the size; counts without a sensible end.
    pub fn check_size(layers: &[(Kind, usize)], couplings: &[(usize, usize)]) -> Result<()> {
        // Work and tables grow with the states of a unit, and single precision tells apart no more counts.
        let many = |kind: Kind| kind.states().is_some_and(|states| states > STATES);
        if let Some((kind, _)) = layers.iter().find(|(kind, _)| kind.is_count() && many(*kind)) {
            return Err(Error::value("kind of units", format!("at most {STATES} states"), kind.word()));
        }
        let width = |&(kind, n): &(Kind, usize)| n as f64 * kind.columns() as f64;
        let own = layers.iter().map(|l| l.0.params().len() as f64 * width(l));
        let pair = |&(a, b): &(usize, usize)| match (layers.get(a), layers.get(b)) {
            (Some(a), Some(b)) => width(a) * width(b),
            _ => 0.0,
        };
        let numbers = own.sum::<f64>() + couplings.iter().map(pair).sum::<f64>();
        let bytes = numbers * size_of::<T>() as f64;
        memory::check(|| format!("a machine of {} parameters", counted(numbers)), bytes)
    }

    /// Refuses to train this machine where there is no room for `copies` arrays of all its parameters.
    pub(crate) fn check_copies(&self, what: &str, copies: usize) -> Result<()> {
        let own = self.members().iter().map(|m| m.layer.params().len() as f64);
        let weights = self.couplings().iter().map(|c| c.w().len() as f64);
        let numbers: f64 = own.chain(weights).sum();
        let bytes = numbers * copies as f64 * size_of::<T>() as f64;
        memory::check(|| format!("{what} a machine of {} parameters", counted(numbers)), bytes)
    }

    /// Refuses `rows` chains whose states, and the inputs of their widest layer, would not fit into memory.
    ///
    /// # Errors
    /// [`Error::Memory`] with the size.
    pub fn check_rows(&self, rows: usize) -> Result<()> {
        let widest = self.members().iter().map(|m| m.layer.width()).max().unwrap_or(0);
        let bytes = self.state_bytes() + (widest * size_of::<T>()) as f64;
        memory::check(|| format!("{} chains of this machine", counted(rows as f64)), rows as f64 * bytes)
    }

    /// Refuses to gather the states of `rows` samples that would not fit into memory.
    pub(crate) fn check_samples(&self, rows: usize) -> Result<()> {
        // Once as they are drawn, once put together.
        let bytes = 2.0 * self.state_bytes() * rows as f64;
        memory::check(|| format!("{} samples of this machine", counted(rows as f64)), bytes)
    }

    /// Bytes of the states of one row.
    fn state_bytes(&self) -> f64 {
        let bytes = |kind: Kind, n: usize| match kind.form() {
            Form::Bits => 8 * n.div_ceil(64),
            Form::Codes => size_of::<u32>() * n,
            Form::Reals => size_of::<T>() * n,
        };
        self.members().iter().map(|m| bytes(m.layer.kind(), m.layer.len()) as f64).sum()
    }
}

/// A number as long as it can be read, else its magnitude.
fn counted(n: f64) -> String {
    if n < 1e9 { n.to_string() } else { format!("{n:.1e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layer;

    const HUGE: usize = usize::MAX;

    #[test]
    fn machines_that_fit_nowhere_are_refused() {
        let rbm = |v, h| Machine::<f32>::check_size(&[v, h], &[(0, 1)]);
        rbm((Kind::Binary, 784), (Kind::Binary, 500)).unwrap();
        for (v, h) in [
            ((Kind::Binary, 10_000_000), (Kind::Binary, 10_000_000)),
            ((Kind::Binary, 64), (Kind::Binary, HUGE)),
            ((Kind::Binary, HUGE), (Kind::Binary, HUGE)),
            ((Kind::Binary, 100_000), (Kind::Potts { q: u32::MAX }, 100)),
        ] {
            assert!(matches!(rbm(v, h), Err(Error::Memory { .. })), "{v:?} {h:?}");
        }
        let counts = Machine::<f32>::check_size(&[(Kind::Binomial { n: 1_000_000_000 }, 2)], &[]);
        assert!(counts.unwrap_err().to_string().contains("binomial:1000000000"));
        let text =
            rbm((Kind::Binary, 1_000_000), (Kind::Binary, 1_000_000_000)).unwrap_err().to_string();
        assert!(text.contains("4000004 GB"), "{text}");
    }

    #[test]
    fn chains_that_fit_nowhere_are_refused() {
        let machine =
            Machine::rbm(Layer::new(Kind::Potts { q: 3 }, 20), Layer::<f64>::new(Kind::Binary, 100));
        machine.check_rows(10_000).unwrap();
        machine.check_samples(10_000).unwrap();
        for rows in [100_000_000_000_000, HUGE] {
            assert!(matches!(machine.check_rows(rows), Err(Error::Memory { .. })), "{rows}");
            assert!(matches!(machine.check_samples(rows), Err(Error::Memory { .. })), "{rows}");
        }
        machine.check_copies("training", 4).unwrap();
        assert!(machine.check_copies("training", HUGE).is_err());
    }
}
