"""The search for the settings of a machine on data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from . import _core, _inputs, _settings
from ._fit import as_table, build
from ._machine import Machine
from ._names import suggesting
from ._parts import FilePath
from ._results import Checkpoint, Run, Trial
from ._table import SchemaLike, Table, is_frame
from ._threads import resolve
from ._units import LayerLike


@suggesting
def tune(
    data: Any,
    *,
    time_budget: float | str | None = None,
    work: float | None = None,
    valid: Any = None,
    machine: str | None = None,
    hidden: int | None = None,
    hidden_kind: str | None = None,
    visible: str | LayerLike | None = None,
    counts: str | None = None,
    schema: SchemaLike | None = None,
    label: str | None = None,
    sample_weight: Any = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    l1: float | None = None,
    l2: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    callback: Callable[[Trial], Any] | None = None,
    folder: FilePath | None = None,
) -> Machine:
    """The best machine for data that can be found within a time.

    Several machines are trained for the same time; the better ones go on for longer, joined by variants of the best one with
    more hidden units or another penalty, which start from what it has learnt. The log-likelihood of held-out rows decides.
    The same search as ``harmonium tune``.

    Parameters
    ----------
    data
        A :class:`Table`, a frame, the name of a data set or file, or an array, as for :func:`train`. A data set with parts is
        tuned on its training part.
    time_budget
        Wall time: seconds, or a text such as ``"10m"``; ten minutes if ``work`` is not given either.
    work
        The size of the search in estimated seconds on one thread, in place of a time: then nothing depends on the clock.
    valid
        Held-out rows; by default a tenth of the rows of ``data``.
    machine, visible, counts, schema, label
        As for :func:`build`; machines with several hidden layers and class machines are not searched.
    hidden, hidden_kind, batch, learning_rate, l1, l2
        Settings that are given are not searched.
    sample_weight
        A weight for each row.
    seed, threads
        Equal seeds and equal ``work`` give equal results on any number of threads.
    callback
        Called with every :class:`Trial` as soon as it is known.
    folder
        An existing folder for checkpoints; the same search with the same folder, data and ``work`` goes on where it was stopped.

    Returns
    -------
    Machine
        The machine, trained. Its ``trials`` are what was tried, a list of :class:`Trial`; ``last_run`` is the run that led to it. Ctrl-C
        or an exception in the callback ends the search and is re-raised; with ``folder`` it can be resumed.

    Examples
    --------
    >>> import harmonium as hm
    >>> machine = hm.tune("bars-and-stripes:3x3", work=2, seed=1)
    >>> best = max(machine.trials, key=lambda trial: trial.score)
    >>> best.method
    'exact'
    """
    if time_budget is not None and work is not None:
        raise ValueError("work: a time or the work is given, not both")
    found = as_table(data, schema, label, seed or 0)
    made = build(
        found, machine=machine, hidden=hidden, hidden_kind=hidden_kind or "binary", visible=visible, counts=counts
    )
    missing = isinstance(found, Table) or is_frame(found)
    rows = _inputs.rows(made, found, "data", missing=missing, weights=sample_weight, soft=True)
    train = _settings.train_params(dict(seed=seed, batch=batch, learning_rate=learning_rate, l1=l1, l2=l2))
    params = {"work": work or 0.0, "keep_hidden": hidden is not None, "keep_kind": hidden_kind is not None, "train": train}
    seconds = _settings.seconds("10m" if time_budget is None and work is None else time_budget)
    notify = None if callback is None else lambda x: callback(Trial._of(x))
    with _settings.explained():
        core, checkpoint, report, raised = _core.tune(
            made._core, rows, made._held_out(valid, missing), params, seconds, folder, notify, resolve(threads)
        )
    if raised is not None:
        raise raised
    tuned = Machine._of(core, seed, {**made.details, "floor": report["floor"]})
    tuned.trials = [Trial._of(x) for x in report["trials"]]
    if checkpoint is not None:
        tuned.last_run = Run(
            report["updates"], report["stop"], report["reason"], report["seconds"], report["settings"], [],
            Checkpoint(checkpoint),
        )  # fmt: skip
    if any(f["verdict"] == "not converged" for f in report["finalists"] if f["trial"] == report["winner"]["trial"]):
        warnings.warn("the likelihood of the machine could not be estimated reliably", RuntimeWarning, stacklevel=2)
    return tuned
