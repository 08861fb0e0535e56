//! The exact negative phase, by enumeration.

use super::{Context, Info, NegativePhase};
use crate::machine::Phase;
use crate::{Real, Result, Role};

/// $\langle t\rangle$ under the model, given each row's condition if the machine has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact;

impl<T: Real> NegativePhase<T> for Exact {
    fn name(&self) -> &'static str {
        "exact"
    }

    fn estimate(&mut self, context: &Context<'_, T>, out: &mut Phase<T>) -> Result<Info> {
        let machine = context.model.machine();
        let exact = machine.exact().at(context.model.beta());
        if machine.with_role(Role::Condition).next().is_none() {
            let moments = exact.moments()?;
            *out.parameters_mut() = moments.stats.cast();
            return Ok(Info { metrics: vec![("log_z", moments.log_z)] });
        }
        let mut conditions = context.data.clone();
        for l in (0..machine.len()).filter(|&l| machine.role(l) != Role::Condition) {
            conditions.take(l);
        }
        *out.parameters_mut() = exact.positive(&conditions, context.wts)?.cast();
        Ok(Info::default())
    }
}
