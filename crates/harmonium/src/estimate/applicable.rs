//! Which estimators apply to which machines; constructors check here.

use super::Estimator;
use crate::sample::hidden_traced;
use crate::{Kind, Machine, Real, Role};

/// Why an estimator does not work, or `None` when it does.
pub(super) type Obstacle = Option<String>;

/// Names of the estimators that can train this machine with their default settings.
pub fn applicable<T: Real>(machine: &Machine<T>) -> Vec<&'static str> {
    let works = |e: &&Estimator| e.obstacle(machine).is_none();
    Estimator::ALL.iter().filter(works).map(Estimator::name).collect()
}

fn name_of<T: Real>(machine: &Machine<T>, l: usize) -> &str {
    &machine.members()[l].name
}

/// Persistent chains sample one distribution; with a conditioning layer there is one per row.
pub(super) fn condition<T: Real>(machine: &Machine<T>) -> Obstacle {
    let l = machine.with_role(Role::Condition).next()?;
    let name = name_of(machine, l);
    Some(format!("its distribution changes with the conditioning layer {name}"))
}

/// Fast weights are not checked for normalisation.
pub(super) fn unbounded_pair<T: Real>(machine: &Machine<T>) -> Obstacle {
    let unbounded = |l: usize| machine.layer(l).kind().states().is_none();
    let mut ends = machine.couplings().iter().map(|c| c.ends());
    let (a, b) = ends.find(|&(a, b)| unbounded(a) && unbounded(b))?;
    let (a, b) = (name_of(machine, a), name_of(machine, b));
    Some(format!("fast weights between the unbounded layers {a} and {b} may not be normalisable"))
}

/// The machines for which Plefka's expansion is implemented.
pub(super) fn mean_field<T: Real>(machine: &Machine<T>, order: u8) -> Obstacle {
    let find = |bad: &dyn Fn(Kind) -> bool| {
        machine.members().iter().find(|m| bad(m.layer.kind())).map(|m| (m.layer.kind(), &m.name))
    };
    // Whether there is a polynomial does not depend on the parameters.
    if let Some((kind, name)) = find(&|k| k.variance_polynomial(&[1.0; 2]).is_none()) {
        return Some(format!(
            "the variance of the {kind} units of {name} is no polynomial of their mean"
        ));
    }
    if order < 2 {
        return None;
    }
    if let Some((kind, name)) = find(&|k| k.one_hot().is_some()) {
        return Some(format!("the {kind} units of {name} have mean field of order 1 only"));
    }
    (order >= 3 && has_triangles(machine))
        .then(|| "three of its units can be coupled in a triangle, and order 3 leaves those out".into())
}

fn has_triangles<T: Real>(machine: &Machine<T>) -> bool {
    let n = machine.len();
    let joined = |a, b| machine.coupling_between(a, b).is_some();
    let triple = |a: usize, b: usize| (0..n).any(|c| joined(a, b) && joined(b, c) && joined(a, c));
    (0..n).any(|a| (0..n).any(|b| triple(a, b)))
}

pub(super) fn hidden_coupled<T: Real>(machine: &Machine<T>) -> Obstacle {
    (!hidden_traced(machine))
        .then(|| "its hidden units are not independent given the visible ones".into())
}

/// The conditional of a unit coupled to hidden units is a sum over its states.
pub(super) fn infinite_sum<T: Real>(machine: &Machine<T>) -> Obstacle {
    let sees_hidden =
        |l: usize| machine.with_role(Role::Hidden).any(|h| machine.coupling_between(l, h).is_some());
    let infinite = |l: &usize| machine.layer(*l).kind().states().is_none() && sees_hidden(*l);
    let l = machine.with_role(Role::Visible).find(infinite)?;
    Some(format!(
        "the conditional of a {} unit of {} given the other visible units has no closed form",
        machine.layer(l).kind(),
        name_of(machine, l)
    ))
}

pub(super) fn lateral<T: Real>(machine: &Machine<T>) -> Obstacle {
    let l = (0..machine.len()).find(|&l| machine.has_lateral(l))?;
    let name = name_of(machine, l);
    Some(format!(
        "the lateral couplings of {name} tie its units together, and layers are coupled as blocks"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::TapParams;
    use crate::{Error, Layer};

    fn layer(kind: Kind, n: usize) -> Layer<f64> {
        Layer::new(kind, n)
    }

    #[test]
    fn a_small_binary_rbm_has_them_all() {
        let machine = Machine::rbm(layer(Kind::Binary, 4), layer(Kind::Binary, 3));
        assert_eq!(applicable(&machine).len(), 10);
        for order in 1..=3 {
            assert_eq!(mean_field(&machine, order), None);
        }
    }

    #[test]
    fn a_refusal_names_the_reason_and_the_alternatives() {
        let machine = Machine::rbm(layer(Kind::Relu, 4), layer(Kind::Binary, 3));
        let refused = Estimator::Tap(TapParams::DEFAULT).check(&machine);
        let Err(Error::Inapplicable { what, why, instead }) = refused else {
            panic!("no mean field for ReLU units")
        };
        assert!(what.contains("tap") && why.contains("ReLU"), "{what}: {why}");
        assert!(instead.contains(&"pcd".into()) && !instead.contains(&"pl".into()), "{instead:?}");
    }

    #[test]
    fn each_rule_finds_its_machine() {
        let b = |n| layer(Kind::Binary, n);
        let cases = [
            ("exact", Machine::rbm(b(784), b(500))),
            ("fpcd", Machine::rbm(layer(Kind::Gaussian, 3), layer(Kind::Relu, 2))),
            ("pt", Machine::conditional(b(2), b(3), b(2))),
            ("ptt", Machine::conditional(b(2), b(3), b(2))),
            ("jarzynski", Machine::conditional(b(2), b(3), b(2))),
            ("tap", Machine::rbm(b(3), layer(Kind::Drelu, 2))),
            ("pl", Machine::deep(b(3), vec![b(2), b(2)])),
            ("pl", Machine::rbm(layer(Kind::Gaussian, 3), b(2))),
            ("ucd", Machine::semi_restricted(b(3), b(2))),
        ];
        for (name, machine) in cases {
            assert!(!applicable(&machine).contains(&name), "{name}");
        }
        // Without hidden units every conditional has the unit's own form.
        assert!(applicable(&Machine::fully_visible(layer(Kind::Gaussian, 3))).contains(&"pl"));
    }

    #[test]
    fn mean_field_by_order() {
        let spins = |n| layer(Kind::Spin, n);
        let lateral = Machine::semi_restricted(spins(3), spins(2));
        assert!(mean_field(&lateral, 2).is_none() && mean_field(&lateral, 3).is_some());
        let potts = Machine::rbm(layer(Kind::Potts { q: 3 }, 3), spins(2));
        assert!(mean_field(&potts, 1).is_none() && mean_field(&potts, 2).is_some());
        let deep = Machine::deep(spins(3), vec![spins(2), spins(2)]);
        assert!(mean_field(&deep, 3).is_none());
    }
}
