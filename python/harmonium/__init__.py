"""Train, sample and evaluate Boltzmann machines.

>>> import numpy as np, harmonium as hm
>>> X = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 50)
>>> machine = hm.Machine.rbm(4, 2)               # four visible and two hidden binary units
>>> run = machine.train(X, updates=2000, learning_rate=0.5)
>>> likelihood = machine.log_likelihood(X)       # nats per row; with an interval and a verdict
>>> likelihood.verdict
'exact'

From a table or a file, in one call: ``hm.train("digits", hidden=100)``, or
``hm.train(frame, label="species", machine="class")``.

Overview:

- :class:`Machine` has methods to train, sample and evaluate; :func:`train` and :func:`build` make one for data;
- :func:`Binary`, :func:`Spin`, :func:`Potts`, :func:`Gaussian`, :func:`ReLU`, :func:`DReLU`, :func:`Binomial`,
  :func:`Poisson`, :func:`NegativeBinomial` and :func:`Ordinal` are the kinds of units;
- :func:`read` and :func:`table` read files and frames as typed columns;
- :class:`Run` (with :class:`LeftOut`), :class:`LogZ`, :class:`LogLikelihood`, :class:`Diagnosis` and :class:`Trace` are results;
- :mod:`harmonium.plot` draws, with matplotlib; :meth:`Trace.to_arviz` converts chains for ArviZ;
- :func:`set_threads` sets the number of threads.

Model files are those of the command line ``harmonium``.
"""

from . import plot
from ._core import __version__
from ._evaluation import Moments
from ._fit import build, train
from ._machine import Machine
from ._custom import EstimatorContext
from ._parts import LayerInfo
from ._results import Checkpoint, Diagnosis, LeftOut, LogLikelihood, LogZ, Run
from ._table import Column, Dataset, Schema, Table, read, table
from ._threads import get_threads, set_threads
from ._trace import Trace
from ._units import (
    Binary,
    Binomial,
    DReLU,
    Gaussian,
    Layer,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Potts,
    ReLU,
    Spin,
    units,
)

load = Machine.load

__all__ = [
    "Binary",
    "Binomial",
    "Checkpoint",
    "Column",
    "DReLU",
    "Dataset",
    "Diagnosis",
    "EstimatorContext",
    "Gaussian",
    "Layer",
    "LayerInfo",
    "LeftOut",
    "LogLikelihood",
    "LogZ",
    "Machine",
    "Moments",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Potts",
    "ReLU",
    "Run",
    "Schema",
    "Spin",
    "Table",
    "Trace",
    "__version__",
    "build",
    "get_threads",
    "load",
    "plot",
    "read",
    "set_threads",
    "table",
    "train",
    "units",
]
