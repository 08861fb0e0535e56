"""Custom components of a run: user functions for the learning rate, the step rule, the estimator and the gradient.

Parameters, gradients and moments are dicts of arrays with the keys and shapes of :meth:`Machine.gradient`: the name of a layer, or
the names of two coupled layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._names import suggestion

if TYPE_CHECKING:
    from ._machine import Machine
    from ._parts import Parts

Array = npt.NDArray[Any]
#: An array for each layer and for each coupling.
ByPart = dict[Union[str, "tuple[str, str]"], Array]
#: From the number of the update, counted from 1, to its learning rate.
Rate = Callable[[int], float]
#: From the gradient and the learning rate to the step; ``None`` if the gradient was changed in place.
StepRule = Callable[[ByPart, float], "ByPart | None"]
#: From the gradient and the machine it was computed for to a term that is added to it, or ``None``.
OnGradient = Callable[[ByPart, "Machine"], "ByPart | None"]


@dataclass(frozen=True)
class EstimatorContext:
    """The arguments of a custom estimator in one update."""

    #: The present machine.
    machine: Machine
    #: The rows of the minibatch, by layer; missing entries are drawn.
    data: dict[str, Array]
    #: Weights of these rows.
    weights: Array | None = field(repr=False)
    #: Moments of the positive phase: averages over the rows of what each parameter multiplies in -E.
    positive: ByPart = field(repr=False)
    #: The run's seed.
    seed: int
    #: Number of the update, counted from 1.
    update: int


#: From the context to the moments of the negative phase, the averages over the model.
CustomEstimator = Callable[[EstimatorContext], ByPart]


def parts(machine: Parts, settings: dict[str, Any], on_gradient: OnGradient | None) -> dict[str, Any]:
    """Removes the functions from the settings, and returns them in the form that the compiled part calls."""

    def taken(name: str) -> Any:
        return settings.pop(name) if callable(settings.get(name)) else None

    if on_gradient is not None and not callable(on_gradient):
        raise TypeError(f"on_gradient: expected a function, got {on_gradient!r}")
    rate, rule, estimator = taken("learning_rate"), taken("optimiser"), taken("estimator")
    return {
        "rate": None if rate is None else lambda update: float(rate(update)),
        "step_rule": None if rule is None else _Rule(machine, rule, "optimiser"),
        "estimator": None if estimator is None else _Estimator(machine, estimator, "estimator"),
        "gradient": None if on_gradient is None else _Gradient(machine, on_gradient, "on_gradient"),
    }


class _Part:
    """A user function, with the names of its input and output arrays."""

    def __init__(self, machine: Parts, function: Any, what: str) -> None:
        self._keys: list[Any] = [*machine.layers, *machine.couplings]
        self._machine = machine._of
        self._function = function
        self._what = what

    def _named(self, arrays: list[Array]) -> ByPart:
        return dict(zip(self._keys, arrays))

    def _listed(self, found: Any, like: list[Array], partial: bool = False) -> list[Array]:
        """The arrays in the order of the machine, in the shapes of ``like``; if ``partial``, missing ones are zero."""
        if not isinstance(found, Mapping):
            raise TypeError(f"{self._what}: expected a dict of arrays, got {found!r}")
        for key in found:
            if key not in self._keys:
                known = suggestion(str(key), map(str, self._keys))
                raise ValueError(f"{self._what}: there is no layer or coupling {key!r}; {known}")
        out = []
        for key, x in zip(self._keys, like):
            if key not in found and not partial:
                raise ValueError(f"{self._what}: {key!r} is not among the arrays")
            array = np.asarray(found[key], dtype=x.dtype) if key in found else np.zeros_like(x)
            if array.shape != x.shape:
                raise ValueError(f"{self._what}: {key!r}: expected shape {x.shape}, got {array.shape}")
            out.append(array)
        return out

    def save(self) -> dict[str, tuple[npt.NDArray[np.float64], list[int]]]:
        """The state of the function for a checkpoint, if it has ``state_dict``."""
        state = self._function.state_dict() if hasattr(self._function, "state_dict") else {}
        arrays = {str(name): np.asarray(x, dtype=np.float64) for name, x in state.items()}
        return {name: (x.ravel(), list(x.shape)) for name, x in arrays.items()}

    def load(self, state: dict[str, npt.NDArray[np.float64]]) -> None:
        """Restores a saved state."""
        if state and hasattr(self._function, "load_state_dict"):
            self._function.load_state_dict(state)

    def clear(self) -> None:
        """Tells the function that an update was undone."""
        if hasattr(self._function, "clear"):
            self._function.clear()


class _Rule(_Part):
    def __call__(self, arrays: list[Array], rate: float) -> list[Array]:
        gradient = self._named(arrays)
        step = self._function(gradient, rate)
        return self._listed(gradient if step is None else step, arrays)


class _Gradient(_Part):
    def __call__(self, arrays: list[Array], core: _core.Machine) -> list[Array] | None:
        added = self._function(self._named(arrays), self._machine(core))
        return None if added is None else self._listed(added, arrays, partial=True)


class _Estimator(_Part):
    def __call__(
        self, core: _core.Machine, rows: _core.Rows, positive: list[Array], seed: int, update: int
    ) -> list[Array]:
        machine: Any = self._machine(core)
        weights = rows.weights()
        context = EstimatorContext(
            machine,
            {name: rows.values(place) for place, name in enumerate(machine.layers) if place in rows.layers()},
            None if weights is None else np.array(weights),
            self._named(positive),
            seed,
            update,
        )
        return self._listed(self._function(context), positive)
