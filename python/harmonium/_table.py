"""Tables of typed columns from files, data sets and frames, and the assignment of columns to layers.

Columns of one kind (and number of categories) form one visible layer. The schema is stored in the model file under the key
``schema``, in the same form as by the command line, so that models can be exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core, _frames
from ._threads import resolve

Array = npt.NDArray[Any]
#: Kinds by column, ``{"age": "real", "town": {"kind": "categorical", "categories": [...]}}``, or the path of a TOML file.
SchemaLike = Union[Mapping[str, Any], str, "PathLike[str]", "Schema"]


@dataclass(frozen=True)
class Column:
    """A column: its name, its kind and its categories.

    Kinds are ``binary``, ``spin``, ``categorical``, ``real``, ``count``, ``label`` and ``ignore``.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    binarize: str | None = None
    #: How numbers are written in text: ``"%Y-%m-%d"``, ``"$1,234.56"``, ``"whole"``; ``None`` for plain numbers.
    format: str | None = None
    #: Transform of a real column, chosen from the rows that the machine is built for.
    transform: str | None = None


@dataclass(frozen=True)
class Schema:
    """The kinds of the columns of a table, and height and width if the columns are the pixels of an image."""

    columns: tuple[Column, ...]
    shape: tuple[int, int] | None = None

    def groups(self) -> list[list[int]]:
        """Indices of the columns of each layer: grouped by kind and number of categories, in order of appearance."""
        found: dict[tuple[str, int], list[int]] = {}
        for place, column in enumerate(self.columns):
            if column.kind not in ("label", "ignore"):
                states = len(column.categories) if column.kind == "categorical" else 0
                found.setdefault((column.kind, states), []).append(place)
        return list(found.values())

    def layers(self, visible: Sequence[str]) -> list[str]:
        """The layers of the groups, among the visible ones: all but that of the class."""
        return [name for name in visible if name != "y" or len(visible) == len(self.groups())]

    @property
    def label(self) -> Column | None:
        """The column that holds the class of a row."""
        return next((c for c in self.columns if c.kind == "label"), None)

    def to_toml(self) -> str:
        """The schema as TOML, for ``harmonium --schema``."""
        return _core.schema_toml(self._described())

    def to_json(self) -> str:
        """The schema as stored in a model file: consecutive columns whose names differ only in a number are one entry."""
        return _core.pack_schema(self._described())

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema of a model file."""
        return cls._of(_core.unpack_schema(text))

    @classmethod
    def _of(cls, described: Mapping[str, Any]) -> Schema:
        columns = [Column(**{**c, "categories": tuple(c["categories"])}) for c in described["columns"]]
        shape = described["shape"]
        return cls(tuple(columns), None if shape is None else (shape[0], shape[1]))

    def _described(self) -> dict[str, Any]:
        """The schema as a dict for the compiled part."""
        return {"shape": self.shape, "columns": [vars(c) for c in self.columns]}


def _known(schema: SchemaLike | None, label: str | None, binarize: float | str | None) -> _core._Known:
    """Rules about columns for the compiled part: by column or the path of a file, the label, the threshold."""
    rules: dict[str, Any] | str
    if isinstance(schema, Schema):
        rules = {"columns": {c.name: _rule(c) for c in schema.columns}}
        if schema.shape is not None:
            rules["shape"] = schema.shape
    elif schema is None or isinstance(schema, Mapping):
        rules = {"columns": {name: _rule(kind) for name, kind in (schema or {}).items()}}
    else:
        rules = fspath(schema)
    return rules, label, None if binarize is None else str(binarize)


def _rule(kind: Any) -> Any:
    """The rule for a column: the name of a kind, or settings."""
    if not isinstance(kind, (Column, Mapping)):
        return str(kind)
    said = vars(kind) if isinstance(kind, Column) else kind
    rule: dict[str, Any] = {name: str(said[name]) for name in ("kind", "binarize", "format") if said.get(name) is not None}
    if said.get("categories") is not None and len(said["categories"]):
        rule["categories"] = [str(name) for name in said["categories"]]
    return rule


@dataclass(frozen=True)
class Table:
    """Rows of typed columns, ready for a machine.

    >>> import harmonium as hm
    >>> digits = hm.read("digits")
    >>> digits.train
    Table(1438 rows: 64 binary, 1 label)
    """

    schema: Schema
    #: An array for each group of columns, in the order of ``schema.groups()``.
    blocks: list[Array]
    #: Which entries are known, for each group; ``None`` where all are.
    known: list[npt.NDArray[np.bool_] | None]
    #: The class of every row as an index into the label's categories, -1 where it is missing.
    labels: npt.NDArray[np.int64] | None = None
    #: Weight of every row.
    weights: npt.NDArray[np.float64] | None = None
    _rows: int = field(default=0, repr=False)
    #: The column types of the original frame, for converting back.
    types: _frames.TypeInfo | None = field(default=None, repr=False)

    @classmethod
    def _of(cls, found: _core.Table) -> Table:
        schema = Schema._of(found.schema())
        blocks = found.blocks()
        labels, weights = found.labels(), found.weights()
        return cls(
            schema,
            [values for _, values, _ in blocks],
            [known for _, _, known in blocks],
            None if labels is None else np.array(labels[1], dtype=np.int64),
            None if weights is None else np.array(weights),
            len(found),
        )

    def __len__(self) -> int:
        return self._rows

    def __repr__(self) -> str:
        kinds = [c.kind for c in self.schema.columns]
        counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"Table({len(self)} rows: {counted})"

    def select(self, rows: Any) -> Table:
        """The given rows."""
        def pick(x: Any) -> Any:
            return None if x is None else x[rows]

        blocks = [b[rows] for b in self.blocks]
        count = len(np.arange(len(self))[rows])
        known = [pick(k) for k in self.known]
        return Table(self.schema, blocks, known, pick(self.labels), pick(self.weights), count, self.types)

    def groups(self) -> list[tuple[str, Array]]:
        """The kind and the values of each group of columns; each group is a layer of a machine."""
        kinds = [self.schema.columns[places[0]].kind for places in self.schema.groups()]
        return list(zip(kinds, self.blocks))

    def arrays(self, layers: list[str]) -> dict[str, Array]:
        """The values by layer, masked where they are missing."""
        out: dict[str, Array] = {}
        for name, block, known in zip(self.schema.layers(layers), self.blocks, self.known):
            out[name] = block if known is None else np.ma.MaskedArray(block, mask=~known)
        if "y" in layers and "y" not in out:
            codes = self.labels if self.labels is not None else np.full(len(self), -1)
            y = np.maximum(codes, 0).reshape(-1, 1).astype(np.float64)
            out["y"] = np.ma.MaskedArray(y, mask=(codes < 0).reshape(-1, 1)) if np.any(codes < 0) else y
        return out


@dataclass(frozen=True)
class Dataset:
    """The parts of a data set; absent ones are ``None``."""

    train: Table
    valid: Table | None = None
    test: Table | None = None


def read(
    name: str | PathLike[str],
    *,
    schema: SchemaLike | None = None,
    label: str | None = None,
    binarize: float | str | None = None,
    header: bool | None = None,
    alphabet: str | None = None,
    reweight: float | None = _core.REWEIGHT,
    seed: int = 0,
    threads: int | None = None,
) -> Dataset:
    """Reads a data set by name, as the command line does.

    Names are ``"digits"``, ``"mnist"``, generated ones such as ``"ising:16x16,t=2.3"``, and files: csv, npy, npz, IDX,
    FASTA, safetensors, a folder of images. The kind of a column is inferred from its values unless ``schema`` gives
    it. ``reweight`` is the identity threshold for re-weighting sequences.
    """
    parts = _core.load_data(
        fspath(name), _known(schema, label, binarize), seed, header, alphabet, reweight, resolve(threads)
    )
    train, valid, test = (None if part is None else Table._of(part) for part in parts)
    assert train is not None
    return Dataset(train, valid, test)


def is_frame(x: Any) -> bool:
    """Whether ``x`` is a frame of pandas or polars or a table of Arrow."""
    return _frames.library(x) is not None


def table(
    frame: Any,
    *,
    schema: SchemaLike | None = None,
    label: str | None = None,
    binarize: float | str | None = None,
    seed: int = 0,
    name: str = "frame",
) -> Table:
    """A frame (pandas, polars, Arrow) as a table of typed columns.

    The type of a column determines its kind: categories with all their levels, bools, dates and times (days since 1970, real),
    words, which are never read as numbers or as missing. The kind of plain numbers is inferred from their values, as for files.
    An entry of ``schema`` overrides both.

    >>> import harmonium as hm
    >>> pandas = __import__("pytest").importorskip("pandas")
    >>> frame = pandas.DataFrame({"smoker": ["yes", "no", "yes"], "height": [1.7, None, 1.82]})
    >>> hm.table(frame).schema.columns[0].categories
    ('no', 'yes')
    """
    return read_frame(frame, name, schema, label, binarize, seed)[0]


def read_frame(
    frame: Any,
    name: str,
    schema: SchemaLike | None,
    label: str | None = None,
    binarize: float | str | None = None,
    seed: int = 0,
    unseen: bool = False,
) -> tuple[Table, _core.Table]:
    """The table of a frame, and its compiled form.

    With ``unseen``, a category that its column does not have is no error: it counts as missing, and the compiled table
    names its row among the impossible ones.
    """
    if not is_frame(frame):
        raise TypeError(f"{name}: expected a frame of pandas, polars or Arrow, got {type(frame).__name__}")
    frame = _frames.eager(frame)
    try:
        found = _frames.columns(frame)
    except (TypeError, ValueError) as e:
        raise type(e)(f"{name}: {e}") from None
    given = _given(found, _kinds(schema, label), label)
    compiled = _core.read_columns(given, name, _known(schema, label, binarize), seed, unseen)
    return replace(Table._of(compiled), types=_frames.types_of(frame, found)), compiled


def _kinds(schema: SchemaLike | None, label: str | None) -> dict[str, str | None]:
    """The given kinds by column, except those in a schema file, which only the compiled part reads."""
    if isinstance(schema, Schema):
        said: dict[str, str | None] = {c.name: c.kind for c in schema.columns}
    else:
        rules = schema if isinstance(schema, Mapping) else {}
        said = {}
        for key, rule in rules.items():
            said[key] = rule.kind if isinstance(rule, Column) else rule.get("kind") if isinstance(rule, Mapping) else rule
    return said if label is None else {**said, label: "label"}


def _given(
    found: list[_frames.Typed], said: Mapping[str, str | None], label: str | None
) -> list[tuple[str, str | None, list[str] | None, npt.NDArray[np.float64]]]:
    """Columns for the compiled part; given kinds override those of the types."""
    out = []
    guessed = label is not None or "label" in said.values()
    for c in found:
        kind, levels, values = c.kind, c.levels, c.values
        if said.get(c.name) in ("real", "count", "spin") and levels is not None:
            levels, values, kind = None, _numbers(c), None
        elif levels is not None and said.get(c.name) in ("binary", "categorical", "label"):
            kind = said[c.name]
        elif c.name not in said and not guessed and kind in ("binary", "categorical") and _core.means_label(c.name):
            guessed, kind = True, "label"
        out.append((c.name, kind, None if levels is None else list(levels), np.ascontiguousarray(values)))
    return out


def _numbers(column: _frames.Typed) -> npt.NDArray[np.float64]:
    """The numbers that words stand for."""
    levels = column.levels or ()
    try:
        values = [{"True": 1.0, "False": 0.0}[x] if x in ("True", "False") else float(x) for x in levels]
    except ValueError as e:
        raise ValueError(f"column {column.name!r}: {e}") from None
    known = ~np.isnan(column.values)
    out = np.full(len(column.values), np.nan)
    out[known] = np.array(values)[column.values[known].astype(np.intp)]
    return out
