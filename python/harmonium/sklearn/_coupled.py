"""The base class of estimators whose real columns may be coupled to each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from .._machine import Machine
from .._units import Layer
from ._base import MachineEstimator
from ._columns import Units

#: The largest number of real columns that ``"auto"`` couples.
_MANY = 64
_PAIR = ("gaussian", "gaussian")


class CoupledEstimator(MachineEstimator):
    """A machine whose real columns are normally distributed given the hidden units.

    The classifier does not derive from it, since p(class | columns) does not depend on couplings among columns.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MachineEstimator._parameter_constraints,
        "coupled": ["boolean", StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_components: int = 64,
        *,
        units: Units = "auto",
        hidden: str = "binary",
        estimator: str | Mapping[str, Any] | None = None,
        learning_rate: float = 0.03,
        batch_size: int = 100,
        n_updates: int | str = "auto",
        coupled: bool | str = False,
        train_params: Mapping[str, Any] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components, units=units, hidden=hidden, estimator=estimator, learning_rate=learning_rate,
            batch_size=batch_size, n_updates=n_updates, train_params=train_params, verbose=verbose,
            random_state=random_state,
        )  # fmt: skip
        self.coupled = coupled

    def _joined(self, visible: Mapping[str, Any]) -> Machine:
        machine = super()._joined(visible)
        reals = visible.get("gaussian")
        if self.coupled is False or reals is None or reals.n < 2 or (self.coupled == "auto" and reals.n > _MANY):
            return machine
        layers = {x.name: (x.role, Layer(x.n, x.kind, x.states)) for x in machine.layers.values()}
        return Machine(layers, [*machine.couplings, _PAIR])

    def _fewest_updates(self, machine: Machine) -> int:
        # Without the normal distribution to start from, the hidden units have all of it to learn.
        return super()._fewest_updates(machine) if _PAIR in machine.couplings else 1000
