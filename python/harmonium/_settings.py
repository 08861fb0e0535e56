"""Settings of a training run: keyword arguments as the compiled part reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._names import explain

if TYPE_CHECKING:
    from ._parts import Parts

REGULARISER = ("l1", "l2", "l1b", "max_norm", "target", "target_strength")
_NAMED = ("estimator", "optimiser", "schedule", "init", "positive")
#: Default settings of named choices.
_DEFAULTS: dict[str, dict[str, dict[str, float]]] = {
    "optimiser": {"momentum": {"mu": 0.9}, "nesterov": {"mu": 0.9}},
    "positive": {"chain": {"sweeps": 5}, "mean_field": {"rounds": 10}},
    "init": {"data": {"std": 0.01}},
    "schedule": {"exponential": {"end": 0.01}, "inverse": {"half": 0.1}, "plateau": {"until": 0.7}},
}


def train_params(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not ``None``, as the fields of the compiled ``TrainParams``."""
    given = {key: _plain(x) for key, x in given.items() if x is not None}
    out: dict[str, Any] = {}
    regulariser = {key: given.pop(key) for key in REGULARISER if key in given}
    if regulariser:
        out["regulariser"] = regulariser
    chains = {key: given.pop(key) for key in ("sweeps", "chains") if key in given}
    estimator = given.pop("estimator", None)
    if estimator is not None or chains:
        out["estimator"] = {**_named(estimator if estimator is not None else "pcd", "estimator"), **chains}
    if "learning_rate" in given:
        out["rate"] = given.pop("learning_rate")
    for key, x in given.items():
        out[key] = _named(x, key) if key in _NAMED else x
    for key, defaults in _DEFAULTS.items():
        if key in out:
            out[key] = {**defaults.get(out[key]["name"], {}), **out[key]}
    return out


def _named(x: Any, what: str) -> dict[str, Any]:
    if isinstance(x, str):
        return {"name": x}
    if isinstance(x, Mapping) and "name" in x:
        return {key: _plain(value) for key, value in x.items()}
    raise TypeError(f"{what}: expected a name, or a dict with a name and settings, got {x!r}")


def _plain(x: Any) -> Any:
    """Numbers of numpy as Python's own."""
    return x.item() if hasattr(x, "item") and getattr(x, "ndim", 1) == 0 else x


def plan(
    machine: Parts, rows: _core.Rows, params: Mapping[str, Any], own: Mapping[str, Any], threads: int
) -> dict[str, Any]:
    """The settings checked and complete."""
    with explained():
        return _core.plan(machine._core, rows, dict(params), own, threads)


class explained:
    """Makes a ``ValueError`` about an unknown name suggest a known one, under the names of the arguments."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, ValueError):
            return
        message = str(error)
        better = explain(message)
        if better.startswith("rate:"):
            better = f"learning_rate{better[4:]}"
        better = better.replace("regulariser.", "")
        if better != message:
            raise ValueError(better) from None


def seconds(time: float | str | None) -> float | None:
    """Seconds of ``90``, ``"90s"``, ``"5m"`` or ``"1.5h"``.

    >>> seconds("1.5h")
    5400.0
    """
    if time is None:
        return None
    return _core.seconds(time if isinstance(time, str) else str(float(time)))
