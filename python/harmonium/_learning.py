"""Training a machine, and resuming a run that was stopped."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _core, _custom, _inputs, _settings
from ._names import suggesting, suggestion
from ._parts import FilePath, Parts
from ._progress import Bar
from ._results import Checkpoint, LeftOut, Run
from ._table import Table, is_frame
from ._threads import resolve


class Learning(Parts):
    """The methods of a machine for training."""

    __slots__ = ()

    @suggesting
    def train(
        self,
        X: Any,
        *,
        valid: Any = None,
        sample_weight: Any = None,
        missing: bool = False,
        estimator: str | Mapping[str, Any] | _custom.CustomEstimator | None = None,
        sweeps: int | None = None,
        chains: int | None = None,
        batch: int | None = None,
        learning_rate: float | _custom.Rate | None = None,
        updates: int | None = None,
        epochs: float | None = None,
        time_budget: float | str | None = None,
        optimiser: str | Mapping[str, Any] | _custom.StepRule | None = None,
        schedule: str | Mapping[str, Any] | None = None,
        form: str | None = None,
        positive: str | Mapping[str, Any] | None = None,
        init: str | Mapping[str, Any] | None = None,
        pretrain: bool | None = None,
        average: int | None = None,
        offset_rate: float | None = None,
        l1: float | None = None,
        l2: float | None = None,
        l1b: float | None = None,
        max_norm: float | None = None,
        target: float | None = None,
        target_strength: float | None = None,
        on_gradient: _custom.OnGradient | None = None,
        evaluate_every: int | None = None,
        evaluate_rows: int | None = None,
        patience: int | None = None,
        seed: int | None = None,
        threads: int | None = None,
        callback: Callable[..., Any] | None = None,
        callback_every: int | None = None,
        progress: bool | None = None,
        checkpoint: FilePath | None = None,
        checkpoint_every: float = _core.CHECKPOINT_SECONDS,
    ) -> Run:
        """Trains the machine on rows of data. Settings that are not given get defaults that depend on the machine and the data,
        the same ones as on the command line.

        Parameters
        ----------
        X
            Rows: an array of any number type, a scipy sparse matrix, a frame of numbers; a dict of such by the name of
            the layer where there are several visible ones (or one array with their columns side by side). A binary layer also
            accepts values between 0 and 1, such as grey values: they enter the averages over the data as they are (as in
            scikit-learn's ``BernoulliRBM``). The model is still one of bits, and the objective is not the likelihood of bits
            drawn with these probabilities. ``estimator="pl"`` needs bits.
        valid
            Held-out rows: the parameters that score best on them are kept, and ``patience`` counts evaluations on them.
        sample_weight
            A weight for each row.
        missing : bool
            Whether NaN and masked entries are missing values, which are averaged over; by default they raise an error.
        estimator
            Of the negative phase: ``"exact"``, ``"cd"``, ``"pcd"``, ``"fpcd"``, ``"pt"``, ``"ptt"``, ``"tap"``, ``"pl"``,
            ``"ucd"``, ``"jarzynski"``, ``"labels"``, or a dict with ``name`` and its settings, as in
            ``{"name": "pt", "rungs": 12}``; or a function that takes an :class:`EstimatorContext` and returns moments.
        sweeps, chains
            Gibbs sweeps per update and number of chains of the estimator.
        batch, learning_rate, updates, epochs
            Rows of a minibatch; learning rate at the start; length of the run, in updates or in epochs. ``learning_rate`` may be
            a function of the number of the update, counted from 1; it then replaces ``schedule`` as well.
        time_budget
            Seconds, or a text such as ``"10m"``: the number of updates follows from it. Like Ctrl-C, it acts between two sweeps; an
            update that it ends is undone.
        optimiser
            ``"sgd"``, ``"momentum"``, ``"nesterov"``, ``"adam"``, ``"cosine"``, or a dict with settings; or a function
            ``rule(gradient, rate)`` that returns the step or changes ``gradient`` in place.
        schedule
            ``"constant"``, ``"linear"``, ``"cosine"``, ``{"name": "exponential", "end": 0.01}``,
            ``{"name": "inverse", "half": 0.1}`` or ``{"name": "plateau", "until": 0.7}``.
        form
            Coordinates of the gradient: ``"plain"``, ``"centred"`` or ``"standardised"``.
        positive
            How hidden units are averaged given the data: ``"analytic"``, ``"exact"``, ``"chain"`` or ``"mean_field"``.
        init
            ``"keep"`` (start from the present parameters) or ``{"name": "data", "std": 0.01}`` (biases from the data, small
            random weights). The default is ``"data"`` if all parameters are zero, else ``"keep"``.
        pretrain : bool
            Whether to train a deep machine layer by layer before training all of it. By default this is done if all weights are
            zero.
        average, offset_rate
            Number of updates over which parameters are averaged; rate of the running averages of hidden offsets.
        l1, l2, l1b, max_norm, target, target_strength
            Penalties on the weights (L1, L2, squared L1 norm of each hidden unit's weights), a bound on the norm of each hidden
            unit's weights, and a target for the means of hidden units with the strength of its penalty. Where rows are few and
            neither these nor a length are set, ``l2`` is 0.3 divided by their number.
        on_gradient
            ``on_gradient(gradient, machine)`` is called with the gradient of every update and the machine it was computed for,
            and returns a term to add, such as that of a penalty, or ``None``.
        evaluate_every, evaluate_rows, patience
            Updates between evaluations, rows used for each, and the number of evaluations without improvement after which the run
            stops.
        seed, threads
            Equal seeds give equal results on any number of threads.
        callback
            Called with each event (a dict) and, if it takes two arguments, with the present machine. The run
            stops when it returns true. It is called every ``callback_every`` updates; by default about a thousand times in
            all.
        progress
            Whether to show a progress bar; by default on terminals and in notebooks.
        checkpoint, checkpoint_every
            A file, written every ``checkpoint_every`` seconds and at the end, from which :meth:`resume` continues.

        Returns
        -------
        Run
            How the run ended, all settings, the learning curve. Ctrl-C or an exception in the callback ends the run
            after the present update and is then re-raised; the machine keeps the parameters reached so far, and ``last_run`` has
            the run.

        Notes
        -----
        Gradients, steps and moments are dicts of arrays in the machine's ``dtype``, with the keys and shapes of
        :meth:`gradient`. Custom functions are called between the compiled steps of an update, on the thread that called
        ``train``. An exception in one of them ends the run before the present update is made. A step rule or estimator with internal
        state can define ``state_dict()`` and ``load_state_dict(state)`` (numbers or arrays by name, restored as float64) for
        checkpoints; ``clear()`` of a step rule is called when an update was undone. With custom functions, the length of
        the run and the learning rate are not chosen by cross-validation.

        Examples
        --------
        >>> import numpy as np, harmonium as hm
        >>> X = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 50)
        >>> def sign(gradient, rate):
        ...     return {part: rate * np.sign(g) for part, g in gradient.items()}
        >>> rbm = hm.Machine.rbm(4, 2)
        >>> run = rbm.train(X, updates=300, optimiser=sign, learning_rate=lambda update: 0.02, seed=1)
        >>> round(rbm.log_likelihood(X).mean, 1)
        -0.7
        """
        given = dict(
            seed=seed, estimator=estimator, sweeps=sweeps, chains=chains, positive=positive, batch=batch,
            updates=updates, epochs=epochs, form=form, optimiser=optimiser, learning_rate=learning_rate,
            schedule=schedule, average=average, init=init, offset_rate=offset_rate, l1=l1, l2=l2, l1b=l1b,
            max_norm=max_norm, target=target, target_strength=target_strength, evaluate_every=evaluate_every,
            evaluate_rows=evaluate_rows, patience=patience,
        )  # fmt: skip
        missing = missing or isinstance(X, Table) or is_frame(X)
        rows = _inputs.rows(self, X, "X", missing=missing, weights=sample_weight, soft=True)
        held_out = self._held_out(valid, missing)
        watch = _Watch(self._of, callback, callback_every, progress, checkpoint, checkpoint_every)
        custom = _custom.parts(self, given, on_gradient)
        return self._run(
            rows, held_out, _settings.train_params(given), custom, None, watch, _settings.seconds(time_budget), threads,
            pretrain,
        )  # fmt: skip

    @suggesting
    def resume(
        self,
        X: Any,
        checkpoint: Checkpoint | FilePath | None = None,
        *,
        valid: Any = None,
        sample_weight: Any = None,
        missing: bool = False,
        estimator: _custom.CustomEstimator | None = None,
        learning_rate: _custom.Rate | None = None,
        optimiser: _custom.StepRule | None = None,
        on_gradient: _custom.OnGradient | None = None,
        time_budget: float | str | None = None,
        threads: int | None = None,
        callback: Callable[..., Any] | None = None,
        callback_every: int | None = None,
        progress: bool | None = None,
        save_to: FilePath | None = None,
        checkpoint_every: float = _core.CHECKPOINT_SECONDS,
    ) -> Run:
        """Resumes a run that was stopped: the result is that of an uninterrupted run, bit for bit.

        ``checkpoint`` is a file or a :class:`Checkpoint`; by default it is that of the last run. The data must be the same.
        Functions given as ``estimator``, ``learning_rate``, ``optimiser`` or ``on_gradient`` must be given again. A run that ended
        because one of them raised can be resumed, but its result differs from that of an uninterrupted run.
        """
        given = {"estimator": estimator, "learning_rate": learning_rate, "optimiser": optimiser}
        for name, x in given.items():
            if x is not None and not callable(x):
                raise TypeError(f"{name}: a resumed run uses the settings of its checkpoint; expected a function, got {x!r}")
        if checkpoint is None:
            if self.last_run is None:
                raise ValueError("checkpoint: this machine has no run of its own to resume")
            checkpoint = self.last_run.checkpoint
        if not isinstance(checkpoint, Checkpoint):
            path, checkpoint = checkpoint, Checkpoint.load(checkpoint)
            save_to = path if save_to is None else save_to
        missing = missing or isinstance(X, Table) or is_frame(X)
        rows = _inputs.rows(self, X, "X", missing=missing, weights=sample_weight, soft=True)
        held_out = self._held_out(valid, missing)
        watch = _Watch(self._of, callback, callback_every, progress, save_to, checkpoint_every)
        return self._run(
            rows, held_out, checkpoint.settings, _custom.parts(self, given, on_gradient), checkpoint, watch,
            _settings.seconds(time_budget), threads,
        )  # fmt: skip

    def _held_out(self, valid: Any, missing: bool) -> _core.Rows | None:
        """Validation rows, without those that the machine gives probability 0."""
        if valid is None:
            return None
        valid, _, _ = _inputs.possible(self, valid, "valid")
        return _inputs.rows(self, valid, "valid", missing=missing, soft=True)

    def _run(
        self,
        rows: _core.Rows,
        valid: _core.Rows | None,
        params: Mapping[str, Any],
        custom: Mapping[str, Any],
        resume: Checkpoint | None,
        watch: _Watch,
        time_budget: float | None,
        threads: int | None,
        pretrain: bool | None = None,
        kept: int = _core.RECORDED_UPDATES,
    ) -> Run:
        with _settings.explained():
            core, found, report, raised = _core.train(
                self._core, rows, valid, dict(params), custom, None if resume is None else resume._core,
                time_budget, pretrain, watch.path, watch.path_every, watch.notify if watch.wanted else None,
                watch.every if watch.callback else 0, watch.snapshot, kept, resolve(threads),
            )  # fmt: skip
        self._core = core
        self._seed = report["settings"].get("seed")
        self.last_run = Run(
            report["updates"], report["stop"], report["reason"], report["seconds"], report["settings"], report["history"],
            Checkpoint(found), None if report["left_out"] is None else LeftOut(**report["left_out"]),
        )  # fmt: skip
        if report["floor"] is not None:
            self._details["floor"] = report["floor"]
        if raised is not None:
            raise raised
        if report["gave_up"]:
            what = f"training gave up: {report['reason']}; try fewer hidden units, a smaller learning_rate or estimator='pt'"
            warnings.warn(what, RuntimeWarning, stacklevel=3)
        return self.last_run

    def _bare_run(self, rows: _core.Rows, callback: Callable[..., Any] | None, every: int, **settings: Any) -> Run:
        """A run without a learning curve, whose recording takes more than a tenth of the time of short runs."""
        watch = _Watch(self._of, callback, every, False, None, _core.CHECKPOINT_SECONDS)
        custom = _custom.parts(self, settings, None)
        return self._run(rows, None, _settings.train_params(settings), custom, None, watch, None, None, kept=0)

    def plan(self, X: Any, *, missing: bool = False, threads: int | None = None, **settings: Any) -> dict[str, Any]:
        """The settings that :meth:`train` would use, including all defaults."""
        known = inspect.signature(Learning.train).parameters
        for name in settings:
            if name not in known:
                raise TypeError(f"plan() has no argument {name!r}; {suggestion(name, known)}")
        settings.pop("pretrain", None)
        rows = _inputs.rows(self, X, "X", missing=missing, soft=True)
        custom = _custom.parts(self, settings, settings.pop("on_gradient", None))
        return _settings.plan(self, rows, _settings.train_params(settings), custom, resolve(threads))


class _Watch:
    """Callback, progress bar and checkpoint of a run."""

    def __init__(
        self,
        machine: Callable[[_core.Machine], Any],
        callback: Callable[..., Any] | None,
        every: int | None,
        progress: bool | None,
        path: FilePath | None,
        path_every: float,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback: expected a function, got {callback!r}")
        self._machine = machine
        self.callback = callback
        #: Updates between two calls of the callback; ``None`` for about a thousand calls in all.
        self.every = every
        self.bar = Bar(progress)
        self.path = None if path is None else Path(path)
        self.path_every = path_every
        self.snapshot = callback is not None and _takes_two(callback)

    @property
    def wanted(self) -> bool:
        return self.callback is not None or self.bar.shown

    def notify(self, event: dict[str, Any], core: _core.Machine | None, regular: bool, updates: int) -> bool:
        self.bar.event(event, updates)
        if self.callback is None or not regular:
            return False
        if core is not None:
            return bool(self.callback(event, self._machine(core)))
        return bool(self.callback(event))


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in places and p.default is p.empty for p in parameters) >= 2
