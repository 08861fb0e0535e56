"""Layers, couplings and parameters of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeVar, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._names import suggestion
from ._results import Run
from ._table import Schema
from ._units import kind_name

FilePath = Union[str, "PathLike[str]"]
Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
#: One array, or an array for each layer.
Arrays = Union[Array, "dict[str, Array]"]

P = TypeVar("P", bound="Parts")


@dataclass(frozen=True)
class LayerInfo:
    """A layer of a machine."""

    name: str
    role: str
    kind: str
    n: int
    states: int | None = None
    #: Shape of negative binomial units.
    r: float | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.n} {self.role} {kind_name(self.kind, self.states, self.r)} units"


class Parts:
    """The compiled machine, with access to its layers, couplings and parameters."""

    __slots__ = ("__weakref__", "_couplings", "_core", "_details", "_layers", "_seed", "last_run")

    #: The last training run, also if it was interrupted.
    last_run: Run | None

    def _start(
        self, core: _core.Machine, seed: int | None = None, details: Mapping[str, str] | None = None
    ) -> None:
        self._core = core
        self._seed = seed
        self._details = dict(details or {})
        self.last_run = None
        found = core.describe()
        layers = []
        for x in found["layers"]:
            kind, states, r = x["kind"], None, None
            if isinstance(kind, dict):
                ((kind, inside),) = kind.items()
                states = inside.get("q", inside.get("n"))
                r = inside["shape"] / 16 if "shape" in inside else None
            layers.append(LayerInfo(x["name"], x["role"], kind, x["units"], states, r))
        self._layers = {layer.name: layer for layer in layers}
        self._couplings = [(layers[a].name, layers[b].name) for a, b in (c["ends"] for c in found["couplings"])]

    @classmethod
    def _of(
        cls: type[P], core: _core.Machine, seed: int | None = None, details: Mapping[str, str] | None = None
    ) -> P:
        machine = cls.__new__(cls)
        machine._start(core, seed, details)
        return machine

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the parameters: float32 or float64."""
        return np.dtype(self._core.dtype)

    @property
    def layers(self) -> dict[str, LayerInfo]:
        """The layers by name, in order."""
        return self._layers

    @property
    def couplings(self) -> list[tuple[str, str]]:
        """The pairs of layers that are coupled."""
        return self._couplings

    @property
    def visible(self) -> list[str]:
        """Names of the visible layers."""
        return [x.name for x in self._layers.values() if x.role == "visible"]

    @property
    def hidden(self) -> list[str]:
        """Names of the hidden layers."""
        return [x.name for x in self._layers.values() if x.role == "hidden"]

    def _place(self, layer: str) -> int:
        if layer not in self._layers:
            raise ValueError(f"layer: there is no layer {layer!r}; {suggestion(str(layer), self._layers)}")
        return list(self._layers).index(layer)

    def _pair(self, a: str | None, b: str | None) -> int:
        if a is None and b is None:
            if len(self._couplings) != 1:
                pairs = ", ".join("-".join(pair) for pair in self._couplings)
                raise ValueError(f"a, b: name the two layers of a coupling; there are {pairs or 'none'}")
            return 0
        for pair in ((a, b), (b, a)):
            if pair in self._couplings:
                return self._couplings.index(pair)
        raise ValueError(f"a, b: {a!r} and {b!r} are not coupled")

    def weights(self, a: str | None = None, b: str | None = None) -> Array:
        """Weights between two layers, or of the only coupling: a read-only view, not a copy.

        A unit of a Potts layer takes one row (or column) for each of its states.
        """
        return np.asarray(self._core.weights(self._pair(a, b)))

    def mask(self, a: str | None = None, b: str | None = None) -> npt.NDArray[np.bool_] | None:
        """Which weights may differ from zero; ``None`` when all may."""
        return self._core.mask(self._pair(a, b))

    def params(self, layer: str) -> dict[str, Array]:
        """The parameters of a layer by name, as read-only views: ``theta`` (the bias), and for real units ``gamma``.

        Potts layers have a row for each unit.
        """
        place = self._place(layer)
        info = self._layers[layer]
        values = np.asarray(self._core.params(place))
        shape = (info.n, info.states) if info.kind == "potts" and info.states else (info.n,)
        return {name: row.reshape(shape) for name, row in zip(self._core.param_names(place), values)}

    def set_weights(self, w: npt.ArrayLike, a: str | None = None, b: str | None = None) -> None:
        """Replaces the weights of a coupling."""
        self._core = self._core.with_weights(self._pair(a, b), self._matrix(w, "w"))

    def set_mask(self, mask: npt.ArrayLike, a: str | None = None, b: str | None = None) -> None:
        """Says which weights may differ from zero; the others are set to zero and stay there."""
        found = np.asarray(mask, dtype=bool)
        if found.ndim != 2:
            raise ValueError(f"mask: expected 2 dimensions, got shape {found.shape}")
        self._core = self._core.with_mask(self._pair(a, b), found)

    def set_params(self, layer: str, **params: npt.ArrayLike) -> None:
        """Replaces parameters of a layer.

        >>> import harmonium as hm
        >>> m = hm.Machine.rbm(hm.Gaussian(2), 1)
        >>> m.set_params("v", theta=[0.5, 0.0])
        >>> m.params("v")["theta"]
        array([0.5, 0. ], dtype=float32)
        """
        place = self._place(layer)
        names = self._core.param_names(place)
        values = np.array(self._core.params(place))
        for name, x in params.items():
            if name not in names:
                raise TypeError(f"a {self._layers[layer].kind} layer has no {name!r}; {suggestion(name, names)}")
            array = np.asarray(x, dtype=self.dtype)
            if array.size not in (1, values.shape[1]):
                raise ValueError(f"{name}: expected {values.shape[1]} numbers, got shape {array.shape}")
            values[names.index(name)] = array.ravel()
        self._core = self._core.with_params(place, values)

    def _matrix(self, x: npt.ArrayLike, name: str) -> Array:
        array = np.asarray(x, dtype=self.dtype)
        if array.ndim != 2:
            raise ValueError(f"{name}: expected 2 dimensions, got shape {array.shape}")
        return array

    @property
    def details(self) -> dict[str, str]:
        """What the model file says of where the machine comes from; may be changed."""
        return self._details

    def _maps(self, layer: str) -> list[str | None] | None:
        """The transforms of the columns of a visible layer of measured columns, where there are some."""
        schema = self.schema
        if schema is None or not any(c.transform for c in schema.columns):
            return None
        names = [x for x in self.visible if x != "y" or len(self.visible) == len(schema.groups())]
        for name, places in zip(names, schema.groups()):
            maps = [schema.columns[place].transform for place in places]
            if name == layer and any(maps):
                return maps
        return None

    def _measured(self, layer: str, values: Any) -> Any:
        """The values of a layer in the numbers of the table that the machine was made for."""
        maps = self._maps(layer)
        return values if maps is None else _core.from_units(maps, np.ascontiguousarray(values, dtype=np.float64))

    @property
    def schema(self) -> Schema | None:
        """What the columns of the visible layers are, where the machine was made for a table."""
        text = self._details.get("schema")
        return None if text is None else Schema.from_json(text)


def _one(arrays: dict[str, Array]) -> Arrays:
    """The array itself where there is only one."""
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays
