//! Greedy pretraining: RBMs trained on the hidden states of the one below, combined into a deep machine.

use super::{Data, Observer, StopReason, TrainParams, TrainPlan, Trainer};
use crate::sample::purpose;
use crate::{Error, Key, Layer, Machine, Real, Result};

/// RBMs on top of each other: a deep belief network, whose top pair is undirected and whose lower levels
/// send their states down.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack<T = f32> {
    levels: Vec<Machine<T>>,
}

impl<T: Real> Stack<T> {
    /// Trains an RBM of `visible` and the first of `hidden` on the data, the next on its hidden states, and so on.
    /// `observers` receive the events of all levels in turn.
    ///
    /// # Errors
    /// No hidden layer, data that do not fit, or an error of training.
    pub fn train(
        visible: Layer<T>,
        hidden: &[Layer<T>],
        params: &TrainParams,
        data: &Data<T>,
        observers: &mut [&mut dyn Observer<T>],
    ) -> Result<Self> {
        Self::train_by(
            visible,
            hidden,
            data,
            params.seed.unwrap_or(0),
            observers,
            |m, d| params.plan(m, d),
            &|| None,
        )
    }

    /// [`train`](Self::train) with the plan of each level made for its machine and data.
    pub(super) fn train_by(
        visible: Layer<T>,
        hidden: &[Layer<T>],
        data: &Data<T>,
        seed: u64,
        observers: &mut [&mut dyn Observer<T>],
        plan: impl Fn(&Machine<T>, &Data<T>) -> Result<TrainPlan>,
        stop: &dyn Fn() -> Option<StopReason>,
    ) -> Result<Self> {
        if hidden.is_empty() {
            return Err(Error::shape("hidden layers of a stack", "at least one", 0));
        }
        let mut levels = Vec::new();
        let (mut below, mut data) = (visible, data.clone());
        for (k, h) in hidden.iter().enumerate() {
            let machine = Machine::rbm(below, h.clone());
            let plan = plan(&machine, &data)?;
            let mut trainer = Trainer::new(machine, plan, &data)?;
            trainer.run_until(observers, stop)?;
            let machine = trainer.result();
            drop(trainer);
            if k + 1 < hidden.len() {
                data = up(&machine, &data, seed, k)?;
            }
            // The next level starts from new parameters, with the kind and size of this hidden layer.
            below = Layer::new(h.kind(), h.len());
            levels.push(machine);
        }
        Ok(Self { levels })
    }

    /// The machines, from the data upwards.
    pub fn levels(&self) -> &[Machine<T>] {
        &self.levels
    }

    /// The deep Boltzmann machine with the weights of all levels.
    ///
    /// A layer in the middle gets input from below and from above. It keeps the parameters of the machine below it,
    /// less the mean input from above, $c \leftarrow c - W'\langle h'\rangle_{\text{data}}$, so that the deep machine
    /// starts near the lowest one and the levels above it act through their fluctuations. Real units have a γ at each
    /// of two levels but only one in the deep machine: the weights of the upper level are halved until it suffices for
    /// normalisation.
    ///
    /// # Errors
    /// Data that do not fit.
    pub fn to_deep(&self, data: &Data<T>, seed: u64) -> Result<Machine<T>> {
        let visible = self.levels[0].layer(0).clone();
        let hidden: Vec<Layer<T>> = self.levels.iter().map(|m| m.layer(1).clone()).collect();
        let mut deep = Machine::deep(visible, hidden);
        let mut data = data.clone();
        for (k, level) in self.levels.iter().enumerate() {
            let room = deep.margin();
            deep.coupling_mut(k).w_mut().assign(level.couplings()[0].w());
            if k > 0 {
                while room.is_some_and(|room| deep.margin().is_some_and(|left| left < 0.5 * room)) {
                    deep.coupling_mut(k).w_mut().mapv_inplace(|w| T::of(0.5) * w);
                }
                let moments = level.at(1.0).moments(data.states(), &[1], data.wts())?;
                let h = level.layer(1);
                let mean =
                    |j: usize| super::coordinates::mean(h.kind().linear_rows(), &moments.layers[1], j);
                let mean = ndarray::Array1::from_iter((0..h.width()).map(mean));
                let above = deep.couplings()[k].w().dot(&mean);
                let kind = deep.layer(k).kind();
                for row in kind.linear_rows() {
                    let mut theta = deep.layer_mut(k).params_mut().row_mut(row);
                    theta.zip_mut_with(&above, |t, &x| *t -= x);
                }
            }
            data = up(level, &data, seed, k)?;
        }
        Ok(deep)
    }
}

/// Hidden states of a level given its data: the data of the next level.
fn up<T: Real>(machine: &Machine<T>, data: &Data<T>, seed: u64, level: usize) -> Result<Data<T>> {
    let key = Key { seed, purpose: purpose::DATA, block: 1 + level as u32, sweep: u64::MAX };
    let h = machine.at(1.0).sample(1, data.states(), key)?;
    let next = Machine::rbm(machine.layer(1).clone(), machine.layer(0).clone());
    let mut up = Data::new(next.data(vec![h])?);
    if let Some(wts) = data.wts() {
        up = up.with_weights(wts.to_vec())?;
    }
    Ok(up)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    /// The upper level holds its lower units by γ = 4, of which the deep machine has 1.
    #[test]
    fn a_deep_machine_of_real_units_can_be_normalised() {
        let level = |below: Kind, gamma: f64, w: f64| {
            let mut machine = Machine::<f64>::rbm(Layer::new(below, 1), Layer::new(Kind::Relu, 1));
            if below == Kind::Relu {
                machine.layer_mut(0).params_mut()[[1, 0]] = gamma;
            }
            machine.coupling_mut(0).w_mut().fill(w);
            machine.check_normalisable().unwrap();
            machine
        };
        let stack = Stack { levels: vec![level(Kind::Binary, 0.0, 1.0), level(Kind::Relu, 4.0, 1.5)] };
        let bits = crate::Bits::from_fn(4, 1, |r, _| r % 2 == 0);
        let data = stack.levels[0].data(vec![crate::Batch::Bits(bits)]).unwrap();
        let deep = stack.to_deep(&Data::new(data), 1).unwrap();
        deep.check_normalisable().unwrap();
        // Halved once: 1 − 0.75² = 0.4375 is less than half of 1; twice: 1 − 0.375² is more.
        assert_eq!(deep.couplings()[1].w()[[0, 0]], 0.375);
    }
}
