"""The machine: layers of units joined by couplings, and all that can be done with it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core, _inputs, _settings
from ._names import suggesting, suggestion
from ._progress import Bar
from ._table import Schema, Table, is_frame
from ._results import Checkpoint, Diagnosis, LogLikelihood, LogZ, Run, html_table
from ._threads import resolve
from ._units import Layer, LayerLike, _words, as_layer

FilePath = Union[str, "PathLike[str]"]
Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
#: One array, or an array for each layer.
Arrays = Union[Array, "dict[str, Array]"]


@dataclass(frozen=True)
class LayerInfo:
    """A layer of a machine."""

    name: str
    role: str
    kind: str
    n: int
    states: int | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.n} {self.role} {_words(self.kind, self.states)} units"


class Machine:
    """A Boltzmann machine: layers of units joined by couplings, ``p(x) = exp(-E(x)) / Z``.

    Which couplings are there decides which machine it is. The usual ones have constructors: :meth:`rbm`,
    :meth:`unrestricted`, :meth:`semi_restricted`, :meth:`fully_visible`, :meth:`deep`, :meth:`class_rbm`, :meth:`mixed` and
    :meth:`conditional`; this one makes any.

    Parameters
    ----------
    layers : mapping of names to ``(role, layer)``
        Roles are ``"visible"``, ``"hidden"`` and ``"condition"`` (always given). A number stands for binary units.
    couplings : sequence of pairs of names
        A layer paired with itself has couplings among its own units. All weights start at zero.

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
    >>> round(rbm.log_likelihood(X).mean, 1)  # ln 1/2 is the best there is
    -0.7
    >>> rbm.weights().shape
    (4, 2)
    """

    __slots__ = ("__weakref__", "_couplings", "_core", "_details", "_layers", "_seed", "last_run")

    #: The last training run; what was learnt up to an interruption is in it as well.
    last_run: Run | None

    def __init__(
        self,
        layers: Mapping[str, tuple[str, LayerLike]],
        couplings: Sequence[tuple[str, str]] = (),
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
        self._start(_core.Machine(json.dumps(spec), pairs))

    def _start(
        self, core: _core.Machine, seed: int | None = None, details: Mapping[str, str] | None = None
    ) -> None:
        self._core = core
        self._seed = seed
        self._details = dict(details or {})
        self.last_run = None
        found = json.loads(core.describe())
        layers = []
        for x in found["layers"]:
            kind, states = x["kind"], None
            if isinstance(kind, dict):
                ((kind, inside),) = kind.items()
                (states,) = inside.values()
            layers.append(LayerInfo(x["name"], x["role"], kind, x["units"], states))
        self._layers = {layer.name: layer for layer in layers}
        self._couplings = [(layers[a].name, layers[b].name) for a, b in (c["ends"] for c in found["couplings"])]

    @classmethod
    def _of(
        cls, core: _core.Machine, seed: int | None = None, details: Mapping[str, str] | None = None
    ) -> Machine:
        machine = cls.__new__(cls)
        machine._start(core, seed, details)
        return machine

    # The usual machines.

    @classmethod
    def rbm(cls, v: LayerLike, h: LayerLike) -> Machine:
        """Restricted Boltzmann machine: visible ``v`` and hidden ``h``, weights between them only."""
        return cls({"v": ("visible", v), "h": ("hidden", h)}, [("v", "h")])

    @classmethod
    def unrestricted(cls, v: LayerLike, h: LayerLike) -> Machine:
        """Unrestricted Boltzmann machine: v-h, v-v and h-h."""
        return cls({"v": ("visible", v), "h": ("hidden", h)}, [("v", "h"), ("v", "v"), ("h", "h")])

    @classmethod
    def semi_restricted(cls, v: LayerLike, h: LayerLike) -> Machine:
        """Semi-restricted Boltzmann machine: v-h and v-v; the hidden units stay independent given v."""
        return cls({"v": ("visible", v), "h": ("hidden", h)}, [("v", "h"), ("v", "v")])

    @classmethod
    def fully_visible(cls, v: LayerLike) -> Machine:
        """Visible units coupled to each other: inverse Ising with spins, inverse Potts with Potts units."""
        return cls({"v": ("visible", v)}, [("v", "v")])

    @classmethod
    def deep(cls, v: LayerLike, hidden: Sequence[LayerLike]) -> Machine:
        """Deep Boltzmann machine: v-h1, h1-h2 and so on."""
        names = ["v", *(f"h{i + 1}" for i in range(len(hidden)))]
        layers: dict[str, tuple[str, LayerLike]] = {"v": ("visible", v)}
        layers.update({name: ("hidden", h) for name, h in zip(names[1:], hidden)})
        return cls(layers, list(zip(names, names[1:])))

    @classmethod
    def class_rbm(cls, v: LayerLike, classes: int, h: LayerLike) -> Machine:
        """Class RBM: data ``v`` and one Potts unit ``y`` for the class, both visible, each joined to ``h``.

        Data are ``{"v": X, "y": codes}``; :meth:`predict_proba` is exact.
        """
        y = Layer(1, "potts", classes)
        return cls({"v": ("visible", v), "y": ("visible", y), "h": ("hidden", h)}, [("v", "h"), ("y", "h")])

    @classmethod
    def mixed(cls, visible: Mapping[str, LayerLike], h: LayerLike) -> Machine:
        """Mixed data: several named visible layers of any kinds, each joined to ``h``.

        >>> import harmonium as hm
        >>> hm.Machine.mixed({"yes_no": hm.Binary(3), "size": hm.Gaussian(2)}, 4).couplings
        [('yes_no', 'h'), ('size', 'h')]
        """
        if "h" in visible:
            raise ValueError("visible: the name 'h' is that of the hidden layer")
        layers = {name: ("visible", v) for name, v in visible.items()}
        return cls({**layers, "h": ("hidden", h)}, [(name, "h") for name in visible])

    @classmethod
    def conditional(cls, past: LayerLike, v: LayerLike, h: LayerLike) -> Machine:
        """Conditional (or temporal) RBM: ``past`` is always given and acts on both v and h.

        Data are ``{"past": U, "v": V}``.
        """
        layers = {"past": ("condition", past), "v": ("visible", v), "h": ("hidden", h)}
        return cls(layers, [("past", "v"), ("past", "h"), ("v", "h")])

    # What it is made of.

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
                raise ValueError(f"a, b: which coupling? There are {pairs or 'none'}")
            return 0
        for pair in ((a, b), (b, a)):
            if pair in self._couplings:
                return self._couplings.index(pair)
        raise ValueError(f"a, b: {a!r} and {b!r} are not coupled")

    def weights(self, a: str | None = None, b: str | None = None) -> npt.NDArray[np.float32]:
        """Weights between two layers, or of the only coupling: a read-only view, not a copy.

        A unit of a Potts layer takes one row (or column) for each of its states.
        """
        return np.asarray(self._core.weights(self._pair(a, b)))

    def mask(self, a: str | None = None, b: str | None = None) -> npt.NDArray[np.bool_] | None:
        """Which weights may differ from zero; ``None`` when all may."""
        return self._core.mask(self._pair(a, b))

    def params(self, layer: str) -> dict[str, npt.NDArray[np.float32]]:
        """The parameters of a layer by name, as read-only views: ``theta`` (the bias), and for real units ``gamma``.

        Potts layers have a row for each unit.
        """
        place = self._place(layer)
        info = self._layers[layer]
        values = np.asarray(self._core.params(place))
        shape = (info.n, info.states) if info.kind == "potts" and info.states else (info.n,)
        return {name: row.reshape(shape) for name, row in zip(self._core.param_names(place), values)}

    def set_weights(self, w: npt.ArrayLike, a: str | None = None, b: str | None = None) -> None:
        """Puts weights in place of those of a coupling."""
        self._core = self._core.with_weights(self._pair(a, b), _single(w, "w"))

    def set_mask(self, mask: npt.ArrayLike, a: str | None = None, b: str | None = None) -> None:
        """Says which weights may differ from zero; the others are set to zero and stay there."""
        found = np.asarray(mask, dtype=bool)
        if found.ndim != 2:
            raise ValueError(f"mask: expected 2 dimensions, got shape {found.shape}")
        self._core = self._core.with_mask(self._pair(a, b), found)

    def set_params(self, layer: str, **params: npt.ArrayLike) -> None:
        """Puts parameters in place of those of a layer.

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
            array = np.asarray(x, dtype=np.float32)
            if array.size not in (1, values.shape[1]):
                raise ValueError(f"{name}: expected {values.shape[1]} numbers, got shape {array.shape}")
            values[names.index(name)] = array.ravel()
        self._core = self._core.with_params(place, values)

    # Files and copies.

    def save(self, path: FilePath) -> None:
        """Writes the model file of the command line: safetensors with a description, in one step."""
        self._core.save(path, self._seed, self._details)

    @classmethod
    def load(cls, path: FilePath) -> Machine:
        """Reads a model file, or the model of a run directory of the command line."""
        path = Path(path)
        if path.is_dir():
            path = path / "model.safetensors"
        seed, details = _core.Machine.provenance(path)
        return cls._of(_core.Machine.load(path), seed, details)

    @property
    def details(self) -> dict[str, str]:
        """What the model file says of where the machine comes from; may be changed."""
        return self._details

    @property
    def schema(self) -> Schema | None:
        """What the columns of the visible layers are, where the machine was made for a table."""
        text = self._details.get("schema")
        return None if text is None else Schema.from_json(text)

    def copy(self) -> Machine:
        """A machine of its own with the same parameters; no number is copied before one of them changes."""
        return self._of(self._core, self._seed, self._details)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Machine:
        return self.copy()

    def __reduce__(self) -> Any:
        data = self._core.to_bytes(self._seed, {})
        return _restore, (data, self._seed, self._details, self.last_run)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Machine):
            return NotImplemented
        return self._core is other._core or self._core.to_bytes(None, {}) == other._core.to_bytes(None, {})

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        layers = ", ".join(str(x) for x in self._layers.values())
        return f"Machine({layers}; {', '.join('-'.join(pair) for pair in self._couplings)})"

    def _repr_html_(self) -> str:
        rows = [(x.name, f"{x.n} {x.role} {_words(x.kind, x.states)} units") for x in self._layers.values()]
        for c, (a, b) in enumerate(self._couplings):
            w = np.asarray(self._core.weights(c))
            rows.append((f"{a}-{b}", f"{w.shape[0]} × {w.shape[1]} weights, root mean square {_rms(w):.4f}"))
        if self.last_run is not None:
            rows.append(("trained", f"{self.last_run.updates} updates: {self.last_run.reason}"))
        return html_table("Boltzmann machine", rows)

    # Learning.

    @suggesting
    def train(
        self,
        X: Any,
        *,
        valid: Any = None,
        sample_weight: Any = None,
        missing: bool = False,
        estimator: str | Mapping[str, Any] | None = None,
        sweeps: int | None = None,
        chains: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        updates: int | None = None,
        epochs: float | None = None,
        time_budget: float | str | None = None,
        optimiser: str | Mapping[str, Any] | None = None,
        schedule: str | Mapping[str, Any] | None = None,
        form: str | None = None,
        positive: str | Mapping[str, Any] | None = None,
        init: str | Mapping[str, Any] | None = None,
        average: int | None = None,
        offset_rate: float | None = None,
        l1: float | None = None,
        l2: float | None = None,
        l1b: float | None = None,
        max_norm: float | None = None,
        target: float | None = None,
        target_strength: float | None = None,
        evaluate_every: int | None = None,
        evaluate_rows: int | None = None,
        patience: int | None = None,
        seed: int | None = None,
        threads: int | None = None,
        callback: Callable[..., Any] | None = None,
        callback_every: int | None = None,
        progress: bool | None = None,
        checkpoint: FilePath | None = None,
        checkpoint_every: float = 30.0,
    ) -> Run:
        """Trains the machine on rows of data. Whatever is left out is chosen from the machine and the data.

        Parameters
        ----------
        X
            Rows: an array of any number type, a scipy sparse matrix, a frame of numbers; a dict of such by the name of
            the layer where there are several visible ones (or one array with their columns side by side).
        valid
            Held-out rows, which decide which model is kept and, with ``patience``, when to stop.
        sample_weight
            A weight for each row.
        missing : bool
            Whether NaN and masked entries are missing values, which are averaged over; otherwise they are errors.
        estimator
            Of the negative phase: ``"exact"``, ``"cd"``, ``"pcd"``, ``"fpcd"``, ``"pt"``, ``"ptt"``, ``"tap"``, ``"pl"``,
            ``"ucd"``, ``"jarzynski"``, ``"labels"``, or a dict with ``name`` and its settings, as in
            ``{"name": "pt", "rungs": 12}``.
        sweeps, chains
            Of the estimator.
        batch, learning_rate, updates, epochs
            Rows of a minibatch, rate at the start, length of the run (one of updates and epochs).
        time_budget
            Seconds, or a text such as ``"10m"``: the number of updates follows from it.
        optimiser
            ``"sgd"``, ``"momentum"``, ``"nesterov"``, ``"adam"``, ``"cosine"``, or a dict with settings.
        schedule
            ``"constant"``, ``"linear"``, ``"cosine"``, ``{"name": "exponential", "end": 0.01}`` or
            ``{"name": "inverse", "half": 0.1}``.
        form
            Coordinates of the gradient: ``"plain"``, ``"centred"`` or ``"standardised"``.
        positive
            ``"analytic"``, ``"exact"``, ``"chain"`` or ``"mean_field"``.
        init
            ``"keep"`` (the machine as it is) or ``{"name": "data", "std": 0.01}``. A machine whose parameters are all
            zero starts from the data, another as it is.
        average, offset_rate
            Updates over which parameters are averaged; rate of the hidden offsets.
        l1, l2, l1b, max_norm, target, target_strength
            Penalties on weights and bounds.
        evaluate_every, evaluate_rows, patience
            When the run is judged, on how many rows, and how many judgements without a better one end it.
        seed, threads
            Equal seeds give equal results on any number of threads.
        callback
            Called with each event, a dict, and if it takes two arguments with the machine as it stands as well. The run
            stops when it returns true. It hears updates every ``callback_every`` (a thousand times in all, where nothing
            is said).
        progress
            Whether to show a bar; where nothing is said, on terminals and in notebooks.
        checkpoint, checkpoint_every
            A file that is written every so many seconds and at the end; :meth:`resume` goes on from it.

        Returns
        -------
        Run
            How the run ended, all settings, the learning curve. Ctrl-C (or an exception of the callback) ends the run
            after the present update and is raised then; the machine keeps what it has learnt, and ``last_run`` the run.
        """
        given = dict(
            seed=seed, estimator=estimator, sweeps=sweeps, chains=chains, positive=positive, batch=batch,
            updates=updates, epochs=epochs, form=form, optimiser=optimiser, learning_rate=learning_rate,
            schedule=schedule, average=average, init=init, offset_rate=offset_rate, l1=l1, l2=l2, l1b=l1b,
            max_norm=max_norm, target=target, target_strength=target_strength, evaluate_every=evaluate_every,
            evaluate_rows=evaluate_rows, patience=patience,
        )  # fmt: skip
        missing = missing or isinstance(X, Table) or is_frame(X)
        rows = _inputs.rows(self, X, "X", missing=missing, weights=sample_weight)
        held_out = None if valid is None else _inputs.rows(self, valid, "valid", missing=missing)
        watch = _Watch(callback, callback_every, progress, checkpoint, checkpoint_every)
        return self._run(
            rows, held_out, _settings.train_params(self, given), None, watch, _settings.seconds(time_budget), threads
        )

    @suggesting
    def resume(
        self,
        X: Any,
        checkpoint: Checkpoint | FilePath | None = None,
        *,
        valid: Any = None,
        sample_weight: Any = None,
        missing: bool = False,
        time_budget: float | str | None = None,
        threads: int | None = None,
        callback: Callable[..., Any] | None = None,
        callback_every: int | None = None,
        progress: bool | None = None,
        save_to: FilePath | None = None,
        checkpoint_every: float = 30.0,
    ) -> Run:
        """Goes on with a run that was stopped: the result is that of a run without the stop, bit for bit.

        ``checkpoint`` is a file, or a :class:`Checkpoint`; without it the last run goes on. The data must be the same.
        """
        if checkpoint is None:
            if self.last_run is None:
                raise ValueError("checkpoint: this machine has no run of its own to go on with")
            checkpoint = self.last_run.checkpoint
        if not isinstance(checkpoint, Checkpoint):
            path, checkpoint = checkpoint, Checkpoint.load(checkpoint)
            save_to = path if save_to is None else save_to
        missing = missing or isinstance(X, Table) or is_frame(X)
        rows = _inputs.rows(self, X, "X", missing=missing, weights=sample_weight)
        held_out = None if valid is None else _inputs.rows(self, valid, "valid", missing=missing)
        watch = _Watch(callback, callback_every, progress, save_to, checkpoint_every)
        return self._run(
            rows, held_out, checkpoint.settings, checkpoint, watch, _settings.seconds(time_budget), threads
        )

    def _run(
        self,
        rows: _core.Rows,
        valid: _core.Rows | None,
        params: Mapping[str, Any],
        resume: Checkpoint | None,
        watch: _Watch,
        time_budget: float | None,
        threads: int | None,
    ) -> Run:
        workers = resolve(threads)
        if watch.wanted and not (time_budget and "updates" not in params and "epochs" not in params):
            watch.total = _settings.plan(self, rows, params, workers)["updates"]
        with _settings.explained():
            core, found, text, raised = _core.train(
                self._core, rows, valid, _settings.text(params), None if resume is None else resume._core,
                time_budget, watch.path, watch.path_every, watch.notify if watch.wanted else None,
                watch.callback_every if watch.callback else 0, watch.snapshot, workers,
            )  # fmt: skip
        report = json.loads(text)
        self._core = core
        self._seed = report["settings"].get("seed")
        self.last_run = Run(
            report["updates"], report["reason"], report["seconds"], report["settings"], report["history"], Checkpoint(found)
        )
        if raised is not None:
            raise raised
        return self.last_run

    def plan(self, X: Any, *, missing: bool = False, threads: int | None = None, **settings: Any) -> dict[str, Any]:
        """The settings that :meth:`train` would use, with every choice written out."""
        known = inspect.signature(Machine.train).parameters
        for name in settings:
            if name not in known:
                raise TypeError(f"plan() has no argument {name!r}; {suggestion(name, known)}")
        rows = _inputs.rows(self, X, "X", missing=missing)
        return _settings.plan(self, rows, _settings.train_params(self, settings), resolve(threads))

    # Sampling.

    def sample(
        self,
        n: int | None = None,
        *,
        chains: int | None = None,
        sweeps: int = 1000,
        between: int = 100,
        temperature: float = 1.0,
        annealing: int | None = None,
        clamp: Mapping[Any, Any] | None = None,
        given: Any = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Arrays:
        """Samples of the visible units, freely or with some of them given.

        Parameters
        ----------
        n
            Number of samples: 10, or one for each row of ``given``, where nothing is said.
        chains
            Each gives every ``chains``-th sample; one for each sample where nothing is said.
        sweeps, between
            Sweeps before the first sample, and between two samples of a chain.
        temperature
            Below 1 samples are more typical, above 1 more varied.
        annealing
            Steps in which chains cool down from high temperature before the first sweep, so that they find all modes.
        clamp
            Units and the values they keep: ``{3: 1.0}``, or ``{("y", 0): 2}`` where there are several visible layers, or
            columns of the table that the machine was made for: ``{"town": "Rome"}``.
        given
            Rows with NaN (or masked) where the machine is to sample; the known entries are kept. Conditional machines
            need it, for their condition.

        Returns
        -------
        numpy.ndarray or dict of numpy.ndarray
            The values, by the name of the layer where there are several visible ones.

        Examples
        --------
        >>> import harmonium as hm
        >>> coins = hm.Machine.rbm(3, 1)
        >>> coins.sample(4, clamp={0: 1}, sweeps=1, seed=1)[:, 0]
        array([1, 1, 1, 1], dtype=uint8)
        """
        trace = self._trace(n, chains, sweeps, between, temperature, annealing, clamp, given, None, seed, threads, False)
        arrays = {name: x for name, x in trace.items() if self._layers[name].role == "visible"}
        return _one(arrays)

    def sample_chains(
        self,
        chains: int = 4,
        draws: int = 1000,
        *,
        sweeps: int = 1000,
        between: int = 1,
        temperature: float = 1.0,
        clamp: Mapping[Any, Any] | None = None,
        given: Any = None,
        start: Any = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Trace:
        """Chains with all their draws, of all layers: for diagnostics and for ArviZ.

        ``start`` holds states of all layers, one row for each chain, where they are not to start from nowhere.

        >>> import harmonium as hm
        >>> trace = hm.Machine.rbm(3, 2).sample_chains(chains=2, draws=5, sweeps=10)
        >>> trace["v"].shape
        (2, 5, 3)
        """
        if chains < 1 or draws < 1:
            raise ValueError(f"chains, draws: expected at least 1, got {chains} and {draws}")
        arrays = self._trace(
            chains * draws, chains, sweeps, between, temperature, None, clamp, given, start, seed, threads, True
        )
        from ._trace import Trace

        shaped = {k: x.reshape(draws, chains, *x.shape[1:]).swapaxes(0, 1) for k, x in arrays.items()}
        energy = shaped.pop("energy")
        return Trace(shaped, energy, between)

    def _trace(
        self,
        n: int | None,
        chains: int | None,
        sweeps: int,
        between: int,
        temperature: float,
        annealing: int | None,
        clamp: Mapping[Any, Any] | None,
        given: Any,
        start: Any,
        seed: int,
        threads: int | None,
        everything: bool,
    ) -> dict[str, Array]:
        """All samples, a draw of all chains after the other."""
        if not 0 < temperature < float("inf"):
            raise ValueError(f"temperature: expected a positive number, got {temperature}")
        if clamp is not None and given is not None:
            raise ValueError("clamp, given: one of them, not both")
        if clamp:
            given = self._clamped(clamp)
        held = None if given is None else self._given(given)
        if held is None and any(x.role == "condition" for x in self._layers.values()):
            raise ValueError("given: this machine needs its condition to be given")
        n = (10 if held is None or clamp else len(held)) if n is None else n
        if n < 1 or (chains is not None and chains < 1) or sweeps < 0:
            raise ValueError(f"n, chains, sweeps: expected at least 1, got {n}, {chains}, {sweeps}")
        count = n if chains is None else min(chains, n)
        first = None if start is None else _inputs.rows(self, start, "start", hidden=True)
        if first is not None and len(first) != count:
            raise ValueError(f"start: expected {count} rows, one for each chain, got {len(first)}")
        workers, beta = resolve(threads), 1.0 / temperature
        walk = _core.Chains(self._core, count, seed, held, first)
        if annealing:
            walk.anneal(self._core, annealing, beta, workers)
        walk.sweep(self._core, sweeps, beta, workers)
        parts: dict[str, list[Array]] = {name: [] for name in (*self._layers, *(["energy"] if everything else []))}
        drawn = 0
        while drawn < n:
            if drawn:
                walk.sweep(self._core, max(1, between), beta, workers)
            rows = walk.rows(self._core)
            for place, (name, info) in enumerate(self._layers.items()):
                if everything or info.role == "visible":
                    parts[name].append(rows.values(place))
            if everything:
                parts["energy"].append(self._core.energy(rows, workers))
            drawn += count
        return {name: np.concatenate(x)[:n] for name, x in parts.items() if x}

    def _clamped(self, clamp: Mapping[Any, Any]) -> dict[str, Array]:
        """One row with NaN wherever nothing is clamped."""
        rows: dict[str, Array] = {
            name: np.full((1, x.n), np.nan) for name, x in self._layers.items() if x.role != "hidden"
        }
        for key, value in clamp.items():
            if isinstance(key, str):
                key, value = self._column(key, value)
            name, unit = key if isinstance(key, tuple) else (None, key)
            if name is None:
                if len(rows) != 1:
                    raise ValueError(f"clamp: {key!r}: which layer? Write ({next(iter(rows))!r}, {key!r})")
                (name,) = rows
            if name not in rows:
                raise ValueError(f"clamp: there is no visible layer {name!r}; {suggestion(str(name), rows)}")
            if not 0 <= unit < rows[name].shape[1]:
                raise ValueError(f"clamp: layer {name!r} has no unit {unit}, only 0 to {rows[name].shape[1] - 1}")
            rows[name][0, unit] = value
        return rows

    def _column(self, name: str, value: Any) -> tuple[tuple[str, int], float]:
        """Layer, unit and number of a column and its value."""
        schema = self.schema
        if schema is None:
            raise ValueError(f"clamp: {name!r}: this machine knows no names of columns")
        names = [c.name for c in schema.columns]
        if name not in names:
            raise ValueError(f"clamp: the machine has no column {name!r}; {suggestion(name, names)}")
        place = names.index(name)
        column = schema.columns[place]
        code: Any = value
        if column.categories:
            if str(value) not in column.categories:
                raise ValueError(f"clamp: {name!r} cannot be {value!r}; {suggestion(str(value), column.categories)}")
            code = column.categories.index(str(value))
            code = 2 * code - 1 if column.kind == "spin" else code
        layers = [x for x in self.visible if not (column.kind != "label" and x == "y")]
        if column.kind == "label":
            return ("y", 0), float(code)
        group = next(i for i, places in enumerate(schema.groups()) if place in places)
        return (layers[group], schema.groups()[group].index(place)), float(code)

    def to_frame(self, arrays: Arrays) -> Any:
        """Samples or completed rows as a pandas frame with the columns of the table the machine was made for."""
        import pandas  # type: ignore[import-untyped,unused-ignore]

        schema = self.schema
        if schema is None:
            raise ValueError("this machine knows no names of columns")
        by_layer = arrays if isinstance(arrays, dict) else {self.visible[0]: arrays}
        columns: dict[str, Any] = {}
        for c in schema.columns:
            if c.kind == "ignore" or (c.kind == "label" and "y" not in by_layer):
                continue
            (layer, unit), _ = self._column(c.name, c.categories[0] if c.categories else 0)
            values = by_layer[layer][:, unit]
            if c.categories:
                codes = (values > 0).astype(int) if c.kind == "spin" else values.astype(int)
                values = np.array(c.categories, dtype=object)[codes]
            columns[c.name] = values
        return pandas.DataFrame(columns)

    def _given(self, given: Any) -> _core.Rows:
        """Rows of which anything may be missing; whole layers that are not mentioned are free."""
        only = None
        if isinstance(given, Mapping):
            only = [x.name for x in self._layers.values() if x.name in given or x.role == "condition"]
        return _inputs.rows(self, given, "given", missing=True, only=only)

    def complete(
        self,
        X: Any,
        *,
        fill: str = "best",
        chains: int = 4,
        sweeps: int = 200,
        seed: int = 0,
        threads: int | None = None,
    ) -> Arrays:
        """Fills what is missing (NaN or masked) in rows.

        ``fill="best"`` takes the most probable value given the known entries (for numbers, their mean), averaged over
        ``chains`` chains for each row; ``"sample"`` makes one draw, jointly for all missing entries of a row.

        >>> import numpy as np, harmonium as hm
        >>> pair = hm.Machine.fully_visible(hm.Spin(2))
        >>> pair.set_weights([[0, 3], [3, 0]])
        >>> pair.complete([[1, np.nan], [np.nan, -1]])
        array([[ 1.,  1.],
               [-1., -1.]])
        """
        if fill not in ("best", "sample"):
            raise ValueError(f"fill: {suggestion(fill, ['best', 'sample'])}")
        if chains < 1 or sweeps < 1:
            raise ValueError(f"chains, sweeps: expected at least 1, got {chains} and {sweeps}")
        rows = _inputs.rows(self, X, "X", missing=True)
        names = [x.name for x in self._layers.values() if x.role == "visible"]
        places = {name: self._place(name) for name in names}
        known = {name: rows.known(places[name]) for name in names}
        out = {name: np.asarray(rows.values(places[name]), dtype=np.float64) for name in names}
        gaps = np.zeros(len(rows), dtype=bool)
        for k in known.values():
            if k is not None:
                gaps |= ~k.all(axis=1)
        which = np.flatnonzero(gaps)
        if which.size:
            part = rows.select(which.tolist())
            means, last = _core.marginals(self._core, part, chains, sweeps, seed, resolve(threads))
            for place, mean in means:
                name = list(self._layers)[place]
                known_here = known[name]
                if known_here is None:
                    continue
                drawn = last.values(place)[: which.size]
                filled = drawn if fill == "sample" else _best(self._layers[name], mean)
                wanted = ~known_here[which]
                block = out[name][which]
                block[wanted] = filled[wanted]
                out[name][which] = block
        return _one(out)

    # Energies, features and judgement.

    def energy(self, states: Any, *, threads: int | None = None) -> Floats:
        """E(x) of each row of states of all layers, a dict by name (or columns side by side)."""
        return self._core.energy(_inputs.rows(self, states, "states", hidden=True), resolve(threads))

    def free_energy(self, X: Any, *, temperature: float = 1.0, threads: int | None = None) -> Floats:
        """F(v) of each row, with ``p(v) = exp(-F(v)) / Z``.

        >>> import harmonium as hm
        >>> hm.Machine.rbm(2, 1).free_energy([[0, 0], [0, 1]]).round(4)  # -ln 2: the hidden unit has two states
        array([-0.6931, -0.6931])
        """
        return self._core.free_energy(_inputs.rows(self, X, "X"), 1.0 / temperature, resolve(threads))

    def transform(self, X: Any, *, inputs: bool = False, threads: int | None = None) -> npt.NDArray[np.float32]:
        """The mean of every hidden unit given each row, or what reaches it (``inputs``).

        Deeper layers see the most probable states of those below.
        """
        if not self.hidden:
            raise ValueError("this machine has no hidden units, hence no features")
        parts = self._core.features(_inputs.rows(self, X, "X"), inputs, resolve(threads))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def predict_proba(self, X: Any, *, layer: str = "y", threads: int | None = None) -> Floats:
        """p(y|v) of a class machine, exactly: a column for each class. ``X`` holds the other visible layers."""
        info = self._layers.get(layer)
        if info is None or info.kind != "potts" or info.n != 1 or info.role != "visible":
            raise ValueError(f"layer: {layer!r} is not a visible layer of a single Potts unit")
        others = [x.name for x in self._layers.values() if x.role != "hidden" and x.name != layer]
        rows = _inputs.rows(self, X, "X", only=others)
        return self._core.posterior(self._place(layer), rows, resolve(threads))

    def log_z(
        self,
        X: Any = None,
        *,
        std_err: float = 0.1,
        chains: int = 128,
        time_budget: float | str | None = None,
        seed: int = 0,
        threads: int | None = None,
        **effort: Any,
    ) -> LogZ:
        """ln Z with its interval and verdict: enumerated where that is quick, else estimated from both sides.

        ``X``, where given, makes the base of the estimate. Further keywords: ``temperatures``, ``ladders``, ``rounds``,
        ``exact_seconds``.
        """
        rows = None if X is None else _inputs.rows(self, X, "X")
        return self._log_z(rows, std_err, chains, time_budget, seed, threads, effort)

    def _log_z(
        self, rows: _core.Rows | None, std_err: float, chains: int, budget: float | str | None, seed: int,
        threads: int | None, effort: Mapping[str, Any],
    ) -> LogZ:  # fmt: skip
        params = {"std_err": std_err, "chains": chains, "seed": seed, **effort}
        with _settings.explained():
            found = _core.log_z(self._core, rows, json.dumps(params), _settings.seconds(budget), resolve(threads))
        return LogZ._of(found)

    def log_likelihood(
        self,
        X: Any,
        *,
        log_z: LogZ | None = None,
        sample_weight: Any = None,
        std_err: float = 0.1,
        chains: int = 128,
        time_budget: float | str | None = None,
        seed: int = 0,
        threads: int | None = None,
        **effort: Any,
    ) -> LogLikelihood:
        """Mean ln p(v) of rows with its interval and verdict; ``.rows`` has that of every row.

        ``log_z`` saves the estimate of ln Z where it is known already.

        >>> import harmonium as hm
        >>> hm.Machine.rbm(2, 1).log_likelihood([[0, 1]]).verdict
        'exact'
        """
        rows = _inputs.rows(self, X, "X", weights=sample_weight)
        workers = resolve(threads)
        if any(x.role == "condition" for x in self._layers.values()):
            return LogLikelihood._of(_core.log_likelihood(self._core, rows, None, seed, workers), None)
        z = log_z or self._log_z(rows, std_err, chains, time_budget, seed, threads, effort)
        return LogLikelihood._of(_core.log_likelihood(self._core, rows, z._found, seed, workers), z)

    def pseudo_log_likelihood(self, X: Any, *, threads: int | None = None) -> Floats:
        """Sum over units of ln p(unit | all other units), exactly, of each row."""
        return _core.pseudo_log_likelihood(self._core, _inputs.rows(self, X, "X"), resolve(threads))

    def log_probability(self, X: Any, *, seconds: float = 600.0, threads: int | None = None) -> Floats:
        """ln p(v) of each row by enumeration; refused where that takes longer than ``seconds``."""
        return self._core.log_probability(_inputs.rows(self, X, "X"), seconds, resolve(threads))

    def moments(self, *, seconds: float = 600.0, threads: int | None = None) -> Moments:
        """ln Z, the mean of every unit and of every pair of coupled units, by enumeration."""
        z, means, stats = self._core.moments(seconds, resolve(threads))
        pairs = dict(zip(self._couplings, stats[len(self._layers) :]))
        return Moments(z, dict(zip(self._layers, means)), pairs)

    def gradient(
        self, X: Any, *, sample_weight: Any = None, seconds: float = 600.0, threads: int | None = None
    ) -> dict[str | tuple[str, str], Floats]:
        """Gradient of the mean log-likelihood by enumeration, by layer and by pair of layers."""
        rows = _inputs.rows(self, X, "X", weights=sample_weight)
        arrays = self._core.gradient(rows, seconds, resolve(threads))
        return dict(zip([*self._layers, *self._couplings], arrays))

    def diagnose(
        self, X: Any, *, chains: int = 32, sweeps: int = 500, seed: int = 0, threads: int | None = None
    ) -> Diagnosis:
        """Whether chains from data and from nowhere meet, and whether samples resemble the rows."""
        rows = _inputs.rows(self, X, "X")
        if len(rows) > 1000:
            rows = rows.select(list(range(0, len(rows), -(-len(rows) // 1000))))
        workers = resolve(threads)
        found = json.loads(_core.equilibrium(self._core, rows, chains, sweeps, seed, workers))
        walk = _core.Chains(self._core, max(100, len(rows)), seed)
        walk.sweep(self._core, 1000, 1.0, workers)
        samples = json.loads(_core.quality(self._core, rows, walk.rows(self._core), workers))
        return Diagnosis(found["verdict"], found["reasons"], found, samples)

    def verify(
        self, *, chains: int = 4000, sweeps: int = 200, seed: int = 0, threads: int | None = None
    ) -> dict[str, Any]:
        """The sampler on this machine (or on a part of it) against enumeration: a small ``p_value`` is bad news."""
        found: dict[str, Any] = json.loads(_core.verify(self._core, chains, sweeps, seed, resolve(threads)))
        return found


@dataclass(frozen=True)
class Moments:
    """Exact averages of a machine."""

    log_z: float
    #: Mean of every unit, by layer.
    means: dict[str, Floats]
    #: Mean product of every coupled pair of units, by coupling.
    pairs: dict[tuple[str, str], Floats]


class _Watch:
    """Callback, progress bar and checkpoint of a run."""

    def __init__(
        self,
        callback: Callable[..., Any] | None,
        every: int | None,
        progress: bool | None,
        path: FilePath | None,
        path_every: float,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback: expected a function, got {callback!r}")
        self.callback = callback
        self._every = every
        self.bar = Bar(progress)
        self.path = None if path is None else Path(path)
        self.path_every = path_every
        self.snapshot = callback is not None and _takes_two(callback)
        self.total = 0

    @property
    def wanted(self) -> bool:
        return self.callback is not None or self.bar.shown

    @property
    def callback_every(self) -> int:
        return max(1, self.total // 1000) if self._every is None else self._every

    def notify(self, text: str, core: _core.Machine | None, regular: bool) -> bool:
        event = json.loads(text)
        self.bar.event(event, self.total or event["update"])
        if self.callback is None or not regular:
            return False
        if core is not None:
            return bool(self.callback(event, Machine._of(core)))
        return bool(self.callback(event))


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in places and p.default is p.empty for p in parameters) >= 2


def _restore(data: bytes, seed: int | None, details: dict[str, str], last_run: Run | None) -> Machine:
    machine = Machine._of(_core.Machine.from_bytes(data), seed, details)
    machine.last_run = last_run
    return machine


def _single(x: npt.ArrayLike, name: str) -> npt.NDArray[np.float32]:
    array = np.asarray(x, dtype=np.float32)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected 2 dimensions, got shape {array.shape}")
    return array


def _rms(w: Array) -> float:
    return float(np.sqrt(np.mean(np.square(w, dtype=np.float64)))) if w.size else 0.0


def _one(arrays: dict[str, Array]) -> Arrays:
    """The array itself where there is only one."""
    return next(iter(arrays.values())) if len(arrays) == 1 else arrays


def _best(info: LayerInfo, mean: Floats) -> Array:
    """The most probable value of each unit from its conditional mean."""
    if info.kind == "binary":
        return (mean > 0.5).astype(np.float64)
    if info.kind == "spin":
        return np.where(mean > 0, 1.0, -1.0)
    if info.kind == "potts":
        return np.asarray(mean.reshape(len(mean), info.n, -1).argmax(axis=2), dtype=np.float64)
    if info.kind in ("binomial", "poisson"):
        return np.floor(mean + 0.5)
    return mean


from ._trace import Trace  # noqa: E402 - annotations of sample_chains name it
