"""Learning: a machine is trained, and a run that was stopped goes on."""

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
from ._results import Checkpoint, Run
from ._table import Table, is_frame
from ._threads import resolve

#: Updates that a learning curve has.
_KEPT = 1000


class Learning(Parts):
    """The part of a machine that learns."""

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
        checkpoint_every: float = 30.0,
    ) -> Run:
        """Trains the machine on rows of data. Whatever is left out is chosen from the machine and the data, as the command
        line chooses it.

        Parameters
        ----------
        X
            Rows: an array of any number type, a scipy sparse matrix, a frame of numbers; a dict of such by the name of
            the layer where there are several visible ones (or one array with their columns side by side). Values between
            0 and 1 may stand for the bits of a binary layer, as grey values of pictures do: they enter the averages over
            the data as they are (as in scikit-learn's ``BernoulliRBM``), the model is one of bits, and what is learnt is
            not the likelihood of bits drawn with these probabilities. ``estimator="pl"`` asks for bits.
        valid
            Held-out rows, which decide which model is kept and, with ``patience``, when to stop.
        sample_weight
            A weight for each row.
        missing : bool
            Whether NaN and masked entries are missing values, which are averaged over; otherwise they are errors.
        estimator
            Of the negative phase: ``"exact"``, ``"cd"``, ``"pcd"``, ``"fpcd"``, ``"pt"``, ``"ptt"``, ``"tap"``, ``"pl"``,
            ``"ucd"``, ``"jarzynski"``, ``"labels"``, or a dict with ``name`` and its settings, as in
            ``{"name": "pt", "rungs": 12}``; or a custom function from an :class:`EstimatorContext` to moments.
        sweeps, chains
            Of the estimator.
        batch, learning_rate, updates, epochs
            Rows of a minibatch, rate at the start, length of the run (one of updates and epochs). A custom function from the
            number of the update, counted from 1, stands for rate and schedule.
        time_budget
            Seconds, or a text such as ``"10m"``: the number of updates follows from it.
        optimiser
            ``"sgd"``, ``"momentum"``, ``"nesterov"``, ``"adam"``, ``"cosine"``, or a dict with settings; or a custom function
            ``rule(gradient, rate)`` that returns the step, or changes the gradient into it.
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
        pretrain : bool
            Whether the levels of a deep machine are trained one after the other before the whole is; where nothing is
            said, those of a machine whose weights are all zero.
        average, offset_rate
            Updates over which parameters are averaged; rate of the hidden offsets.
        l1, l2, l1b, max_norm, target, target_strength
            Penalties on weights and bounds.
        on_gradient
            An observer or a penalty: ``on_gradient(gradient, machine)`` sees the gradient of every update and the machine that
            it is taken at, and returns what is to be added, or ``None``.
        evaluate_every, evaluate_rows, patience
            When the run is evaluated, on how many rows, and how many evaluation without a better one end it.
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

        Notes
        -----
        Gradients, steps and moments are dicts of arrays in the machine's ``dtype``, with the keys and shapes of
        :meth:`gradient`. Custom functions are called between the compiled steps of an update, on the thread that called ``train``.
        What one of them raises ends the run before the present update is made. A step rule or estimator that remembers
        something can have ``state_dict()`` and ``load_state_dict(state)`` (numbers or arrays by name, float64 when they come
        back), which checkpoints keep; ``clear()`` of a rule is called when an update was undone. Where there are custom functions,
        length and rate are not chosen by cross-validation.

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
        held_out = None if valid is None else _inputs.rows(self, valid, "valid", missing=missing, soft=True)
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
        checkpoint_every: float = 30.0,
    ) -> Run:
        """Resumes a run that was stopped: the result is that of an uninterrupted run, bit for bit.

        ``checkpoint`` is a file, or a :class:`Checkpoint`; without it the last run goes on. The data must be the same, and
        functions that took the place of ``estimator``, ``learning_rate`` or ``optimiser``, or acted on the gradient, are to be
        given again. A run that one of them ended by an exception goes on, but not to the bit of an uninterrupted one.
        """
        given = {"estimator": estimator, "learning_rate": learning_rate, "optimiser": optimiser}
        for name, x in given.items():
            if x is not None and not callable(x):
                raise TypeError(f"{name}: a run that goes on has the settings of its checkpoint; expected a function, got {x!r}")
        if checkpoint is None:
            if self.last_run is None:
                raise ValueError("checkpoint: this machine has no run of its own to resume")
            checkpoint = self.last_run.checkpoint
        if not isinstance(checkpoint, Checkpoint):
            path, checkpoint = checkpoint, Checkpoint.load(checkpoint)
            save_to = path if save_to is None else save_to
        missing = missing or isinstance(X, Table) or is_frame(X)
        rows = _inputs.rows(self, X, "X", missing=missing, weights=sample_weight, soft=True)
        held_out = None if valid is None else _inputs.rows(self, valid, "valid", missing=missing, soft=True)
        watch = _Watch(self._of, callback, callback_every, progress, save_to, checkpoint_every)
        return self._run(
            rows, held_out, checkpoint.settings, _custom.parts(self, given, on_gradient), checkpoint, watch,
            _settings.seconds(time_budget), threads,
        )  # fmt: skip

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
        kept: int = _KEPT,
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
            Checkpoint(found),
        )
        if report["floor"] is not None:
            self._details["floor"] = report["floor"]
        if raised is not None:
            raise raised
        if report["gave_up"]:
            what = f"training gave up: {report['reason']}; try fewer hidden units, a smaller learning_rate or estimator='pt'"
            warnings.warn(what, RuntimeWarning, stacklevel=3)
        return self.last_run

    def _bare_run(self, rows: _core.Rows, callback: Callable[..., Any] | None, every: int, **settings: Any) -> Run:
        """A run without a learning curve, which costs a short run of small updates more than a tenth of its time."""
        watch = _Watch(self._of, callback, every, False, None, 30.0)
        custom = _custom.parts(self, settings, None)
        return self._run(rows, None, _settings.train_params(settings), custom, None, watch, None, None, kept=0)

    def plan(self, X: Any, *, missing: bool = False, threads: int | None = None, **settings: Any) -> dict[str, Any]:
        """The settings that :meth:`train` would use, with every choice written out."""
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
        #: Updates between two that the callback hears of; so many that there are a thousand where ``None``.
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
