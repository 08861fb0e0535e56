"""The class `Machine`: layers of units joined by couplings, with all its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._evaluation import Evaluating
from ._learning import Learning
from ._names import suggestion
from ._parts import Array, FilePath
from ._results import Run, html_table
from ._sampling import Sampling
from ._units import Layer, LayerLike, as_layer, kind_name


class Machine(Learning, Sampling, Evaluating):
    """A Boltzmann machine: layers of units joined by couplings, ``p(x) = exp(-E(x)) / Z``.

    The couplings determine the type of machine. The usual ones have constructors: :meth:`rbm`,
    :meth:`unrestricted`, :meth:`semi_restricted`, :meth:`fully_visible`, :meth:`deep`, :meth:`class_rbm`, :meth:`mixed` and
    :meth:`conditional`; this constructor makes any machine.

    Parameters
    ----------
    layers : mapping of names to ``(role, layer)``
        Roles are ``"visible"``, ``"hidden"`` and ``"condition"`` (always given). A number stands for binary units.
    couplings : sequence of pairs of names
        A layer paired with itself has couplings among its own units. All weights start at zero.
    dtype
        Precision of the parameters and of computations with them: ``numpy.float32`` or ``numpy.float64``. The constructors below
        take it as well.

    Examples
    --------
    >>> import numpy as np, harmonium as hm
    >>> rbm = hm.Machine.rbm(hm.Binary(4), hm.Binary(2))
    >>> rbm
    Machine(v: 4 visible Binary units, h: 2 hidden Binary units; v-h)
    >>> X = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 50)
    >>> run = rbm.train(X, updates=2000, learning_rate=0.5, seed=1)
    >>> run.reason
    'all updates are done'
    >>> round(rbm.log_likelihood(X).mean, 1)  # the maximum is ln 1/2
    -0.7
    >>> rbm.weights().shape
    (4, 2)
    """

    __slots__ = ()

    def __init__(
        self,
        layers: Mapping[str, tuple[str, LayerLike]],
        couplings: Sequence[tuple[str, str]] = (),
        *,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        names = list(layers)
        spec = []
        for name, (role, units) in layers.items():
            if role not in ("visible", "hidden", "condition"):
                raise ValueError(f"layers[{name!r}]: unknown role {role!r}; expected visible, hidden or condition")
            layer = as_layer(units, f"layers[{name!r}]")
            spec.append({"name": name, "role": role, "kind": layer._spec(), "units": int(layer.n)})
        pairs = []
        for a, b in couplings:
            for end in (a, b):
                if end not in layers:
                    raise ValueError(f"couplings: there is no layer {end!r}; {suggestion(end, names)}")
            i, j = sorted((names.index(a), names.index(b)))
            pairs.append((i, j))
        self._start(_core.Machine(spec, pairs, np.dtype(dtype).name))

    # The usual machines.

    @classmethod
    def rbm(cls, v: LayerLike, h: LayerLike, *, dtype: npt.DTypeLike = np.float32) -> Machine:
        """Restricted Boltzmann machine: visible ``v`` and hidden ``h``, weights between them only."""
        return cls({"v": ("visible", v), "h": ("hidden", h)}, [("v", "h")], dtype=dtype)

    @classmethod
    def unrestricted(cls, v: LayerLike, h: LayerLike, *, dtype: npt.DTypeLike = np.float32) -> Machine:
        """Unrestricted Boltzmann machine: v-h, v-v and h-h."""
        return cls({"v": ("visible", v), "h": ("hidden", h)}, [("v", "h"), ("v", "v"), ("h", "h")], dtype=dtype)

    @classmethod
    def semi_restricted(cls, v: LayerLike, h: LayerLike, *, dtype: npt.DTypeLike = np.float32) -> Machine:
        """Semi-restricted Boltzmann machine: v-h and v-v; the hidden units stay independent given v."""
        return cls({"v": ("visible", v), "h": ("hidden", h)}, [("v", "h"), ("v", "v")], dtype=dtype)

    @classmethod
    def fully_visible(cls, v: LayerLike, *, dtype: npt.DTypeLike = np.float32) -> Machine:
        """Visible units coupled to each other: inverse Ising with spins, inverse Potts with Potts units."""
        return cls({"v": ("visible", v)}, [("v", "v")], dtype=dtype)

    @classmethod
    def deep(cls, v: LayerLike, hidden: Sequence[LayerLike], *, dtype: npt.DTypeLike = np.float32) -> Machine:
        """Deep Boltzmann machine: v-h1, h1-h2 and so on."""
        names = ["v", *(f"h{i + 1}" for i in range(len(hidden)))]
        layers: dict[str, tuple[str, LayerLike]] = {"v": ("visible", v)}
        layers.update({name: ("hidden", h) for name, h in zip(names[1:], hidden)})
        return cls(layers, list(zip(names, names[1:])), dtype=dtype)

    @classmethod
    def class_rbm(cls, v: LayerLike, classes: int, h: LayerLike, *, dtype: npt.DTypeLike = np.float32) -> Machine:
        """Class RBM: data ``v`` and one Potts unit ``y`` for the class, both visible, each joined to ``h``.

        Data are ``{"v": X, "y": codes}``; :meth:`predict_proba` is exact.
        """
        y = Layer(1, "potts", classes)
        layers = {"v": ("visible", v), "y": ("visible", y), "h": ("hidden", h)}
        return cls(layers, [("v", "h"), ("y", "h")], dtype=dtype)

    @classmethod
    def mixed(cls, visible: Mapping[str, LayerLike], h: LayerLike, *, dtype: npt.DTypeLike = np.float32) -> Machine:
        """Mixed data: several named visible layers of any kinds, each joined to ``h``.

        >>> import harmonium as hm
        >>> hm.Machine.mixed({"yes_no": hm.Binary(3), "size": hm.Gaussian(2)}, 4).couplings
        [('yes_no', 'h'), ('size', 'h')]
        """
        if "h" in visible:
            raise ValueError("visible: the name 'h' is that of the hidden layer")
        layers = {name: ("visible", v) for name, v in visible.items()}
        return cls({**layers, "h": ("hidden", h)}, [(name, "h") for name in visible], dtype=dtype)

    @classmethod
    def conditional(
        cls, past: LayerLike, v: LayerLike, h: LayerLike, *, dtype: npt.DTypeLike = np.float32
    ) -> Machine:
        """Conditional (or temporal) RBM: ``past`` is always given and acts on both v and h.

        Data are ``{"past": U, "v": V}``.
        """
        layers = {"past": ("condition", past), "v": ("visible", v), "h": ("hidden", h)}
        return cls(layers, [("past", "v"), ("past", "h"), ("v", "h")], dtype=dtype)

    # Files and copies.

    def save(self, path: FilePath) -> None:
        """Writes a model file in the format of the command line, safetensors with metadata, and replaces an old one atomically."""
        self._core.save(path, self._seed, self._details)

    @classmethod
    def load(cls, path: FilePath, *, dtype: npt.DTypeLike | None = None) -> Machine:
        """Reads a model file, or the model of a run directory of the command line; ``dtype`` is by default that of the file."""
        path = Path(path)
        if path.is_dir():
            path = path / "model.safetensors"
        return cls._of(*_core.Machine.load(path, None if dtype is None else np.dtype(dtype).name))

    def copy(self) -> Machine:
        """An independent machine with the same parameters, which are copied only when one of the two changes."""
        return self._of(self._core, self._seed, self._details)

    __copy__ = copy

    def astype(self, dtype: npt.DTypeLike) -> Machine:
        """An independent machine with the parameters converted to ``numpy.float32`` or ``numpy.float64``.

        >>> import numpy as np, harmonium as hm
        >>> hm.Machine.rbm(3, 2).astype(np.float64).weights().dtype
        dtype('float64')
        """
        return self._of(self._core.astype(np.dtype(dtype).name), self._seed, self._details)

    def __deepcopy__(self, memo: Any) -> Machine:
        return self.copy()

    def __reduce__(self) -> Any:
        data = self._core.to_bytes(self._seed, {})
        return _restore, (data, self._seed, self._details, self.last_run, self.dtype.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Machine):
            return NotImplemented
        return self._core is other._core or self._core.to_bytes(None, {}) == other._core.to_bytes(None, {})

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        layers = ", ".join(str(x) for x in self._layers.values())
        return f"Machine({layers}; {', '.join('-'.join(pair) for pair in self._couplings)})"

    def _repr_html_(self) -> str:
        rows = [(x.name, f"{x.n} {x.role} {kind_name(x.kind, x.states, x.r)} units") for x in self._layers.values()]
        for c, (a, b) in enumerate(self._couplings):
            w = np.asarray(self._core.weights(c))
            rows.append((f"{a}-{b}", f"{w.shape[0]} × {w.shape[1]} weights, root mean square {_rms(w):.4f}"))
        if self.last_run is not None:
            rows.append(("trained", f"{self.last_run.updates} updates: {self.last_run.reason}"))
        return html_table("Boltzmann machine", rows)


def _restore(
    data: bytes, seed: int | None, details: dict[str, str], last_run: Run | None, dtype: str = "float32"
) -> Machine:
    machine = Machine._of(_core.Machine.from_bytes(data, dtype), seed, details)
    machine.last_run = last_run
    return machine


def _rms(w: Array) -> float:
    return float(np.sqrt(np.mean(np.square(w, dtype=np.float64)))) if w.size else 0.0
