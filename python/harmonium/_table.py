"""Tables of typed columns: files, data sets and frames, and how their columns sit in the layers of a machine.

Columns of one kind (and number of categories) are one visible layer. The schema is kept in the model file under the key
``schema``, in the form of the command line, so that either can use the other's models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core, _frames
from ._threads import resolve

Array = npt.NDArray[Any]
#: Kinds by column, ``{"age": "real", "town": {"kind": "categorical", "categories": [...]}}``, or the path of a TOML file.
SchemaLike = Union[Mapping[str, Any], str, "PathLike[str]", "Schema"]
#: Names of columns that are taken for the label, as in files.
_LABELS = ("label", "labels", "class", "target")


@dataclass(frozen=True)
class Column:
    """A column: its name, its kind and its categories.

    Kinds are ``binary``, ``spin``, ``categorical``, ``real``, ``count``, ``label`` and ``ignore``.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    binarize: str | None = None
    #: How numbers are written in text: ``"%Y-%m-%d"``, ``"$1,234.56"``, ``"whole"``; ``None`` as programs write them.
    format: str | None = None
    #: How a machine sees the numbers of a real column; chosen on the rows it is made for.
    transform: str | None = None


@dataclass(frozen=True)
class Schema:
    """What every column of a table is, and the height and width where the columns are an image."""

    columns: tuple[Column, ...]
    shape: tuple[int, int] | None = None

    def groups(self) -> list[list[int]]:
        """Places of the columns that make up each layer: by kind and number of categories, in order of appearance."""
        found: dict[tuple[str, int], list[int]] = {}
        for place, column in enumerate(self.columns):
            if column.kind not in ("label", "ignore"):
                states = len(column.categories) if column.kind == "categorical" else 0
                found.setdefault((column.kind, states), []).append(place)
        return list(found.values())

    @property
    def label(self) -> Column | None:
        """The column that holds the class of a row."""
        return next((c for c in self.columns if c.kind == "label"), None)

    def to_toml(self) -> str:
        """The schema as ``harmonium --schema`` reads it."""
        lines = [] if self.shape is None else [f"shape = [{self.shape[0]}, {self.shape[1]}]"]
        lines.append("[columns]")
        lines += [f"{_quoted(c.name)} = {_line(c.kind, c.categories, c.binarize, c.format)}" for c in self.columns]
        return "\n".join(lines) + "\n"

    def to_json(self) -> str:
        """The schema as it is kept in a model file: neighbours that differ only in their number are one entry."""
        columns = [
            {"name": c.name, "kind": c.kind, "categories": c.categories, "binarize": c.binarize, "format": c.format,
             "transform": c.transform}  # fmt: skip
            for c in self.columns
        ]
        return _core.pack_schema(json.dumps({"shape": self.shape, "columns": columns}))

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """The schema of a model file."""
        return cls._of(_core.unpack_schema(text))

    @classmethod
    def _of(cls, text: str) -> Schema:
        """The schema of the JSON of all its columns."""
        raw = json.loads(text)
        columns = [
            Column(c["name"], c["kind"], tuple(c["categories"]), c["binarize"], c["format"], c["transform"])
            for c in raw["columns"]
        ]
        return cls(tuple(columns), None if raw["shape"] is None else (raw["shape"][0], raw["shape"][1]))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _line(kind: str | None, categories: Any, binarize: Any, format: Any = None) -> str:
    parts = [] if kind is None else [f"kind = {_quoted(str(kind))}"]
    if categories:
        parts.append(f"categories = [{', '.join(_quoted(str(c)) for c in categories)}]")
    if binarize is not None:
        try:
            parts.append(f"binarize = {float(binarize)!r}")
        except ValueError:
            parts.append(f"binarize = {_quoted(str(binarize))}")
    if format is not None:
        parts.append(f"format = {_quoted(str(format))}")
    return "{ " + ", ".join(parts) + " }"


def overrides(schema: SchemaLike | None, label: str | None = None, binarize: Any = None) -> str:
    """What is known about columns, as TOML."""
    if isinstance(schema, Schema):
        text = schema.to_toml()
    elif schema is None or isinstance(schema, Mapping):
        lines = [f"binarize = {float(binarize)!r}"] if isinstance(binarize, (int, float)) else []
        lines += [f"binarize = {_quoted(binarize)}"] if isinstance(binarize, str) else []
        lines.append("[columns]")
        for name, kind in (schema or {}).items():
            if isinstance(kind, Column):
                lines.append(f"{_quoted(name)} = {_line(kind.kind, kind.categories, kind.binarize, kind.format)}")
            elif isinstance(kind, Mapping):
                line = _line(kind.get("kind"), kind.get("categories"), kind.get("binarize"), kind.get("format"))
                lines.append(f"{_quoted(name)} = {line}")
            else:
                lines.append(f"{_quoted(name)} = {_quoted(str(kind))}")
        text = "\n".join(lines) + "\n"
    else:
        text = Path(schema).read_text(encoding="utf-8")
    return text if label is None else f'{text}\n{_quoted(label)} = "label"\n'


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
    #: The class of every row as a place among the label's categories, -1 where it is missing.
    labels: npt.NDArray[np.int64] | None = None
    #: How much every row counts.
    weights: npt.NDArray[np.float64] | None = None
    _rows: int = field(default=0, repr=False)
    #: The types of the frame that it was read from, for the way back.
    memory: _frames.Memory | None = field(default=None, repr=False)

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
        return Table(self.schema, blocks, known, pick(self.labels), pick(self.weights), count, self.memory)

    def groups(self) -> list[tuple[str, Array]]:
        """The kind and the values of each group of columns, which are a layer of a machine."""
        kinds = [self.schema.columns[places[0]].kind for places in self.schema.groups()]
        return list(zip(kinds, self.blocks))

    def arrays(self, layers: list[str]) -> dict[str, Array]:
        """The values by layer, masked where they are missing."""
        out: dict[str, Array] = {}
        names = [name for name in layers if name != "y" or len(layers) == len(self.blocks)]
        for name, block, known in zip(names, self.blocks, self.known):
            out[name] = block if known is None else np.ma.MaskedArray(block, mask=~known)
        if "y" in layers and "y" not in out:
            codes = self.labels if self.labels is not None else np.full(len(self), -1)
            y = np.maximum(codes, 0).reshape(-1, 1).astype(np.float64)
            out["y"] = np.ma.MaskedArray(y, mask=(codes < 0).reshape(-1, 1)) if np.any(codes < 0) else y
        return out


@dataclass(frozen=True)
class Dataset:
    """A data set in its parts; those it does not have are ``None``."""

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
    reweight: float | None = 0.8,
    seed: int = 0,
    threads: int | None = None,
) -> Dataset:
    """Reads a data set by name, as the command line does.

    Names are ``"digits"``, ``"mnist"``, generated ones such as ``"ising:16x16,t=2.3"``, and files: csv, npy, npz, IDX,
    FASTA, safetensors, a folder of images. Every column gets a kind, inferred from its values where ``schema`` does not
    say. ``reweight`` is the identity threshold for re-weighting sequences.
    """
    parts = _core.load_data(
        fspath(name), overrides(schema, label, binarize), seed, header, alphabet, reweight, resolve(threads)
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

    The type of a column decides what it is: categories with all their levels, bools, dates and times (days since 1970, real),
    words, which are never taken for numbers or for missing. Plain numbers are evaluated by their values, as those of a file.
    ``schema`` has the last word.

    >>> import harmonium as hm
    >>> pandas = __import__("pytest").importorskip("pandas")
    >>> frame = pandas.DataFrame({"smoker": ["yes", "no", "yes"], "height": [1.7, None, 1.82]})
    >>> hm.table(frame).schema.columns[0].categories
    ('no', 'yes')
    """
    if not is_frame(frame):
        raise TypeError(f"{name}: expected a frame of pandas, polars or Arrow, got {type(frame).__name__}")
    frame = _frames.eager(frame)
    try:
        found = _frames.columns(frame)
    except (TypeError, ValueError) as e:
        raise type(e)(f"{name}: {e}") from None
    given = _given(found, _kinds(schema, label), label)
    made = Table._of(_core.read_columns(given, name, overrides(schema, label, binarize), seed))
    return replace(made, memory=_frames.memory(frame, found))


def _kinds(schema: SchemaLike | None, label: str | None) -> dict[str, str | None]:
    """The kinds that are said, as far as Python sees them; those in a file are seen by the compiled part only."""
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
    """Columns for the compiled part, with the levels of a column under the kind that is said of it."""
    out = []
    guessed = label is not None or "label" in said.values()
    for c in found:
        kind, levels, values = c.kind, c.levels, c.values
        if said.get(c.name) in ("real", "count", "spin") and levels is not None:
            levels, values, kind = None, _numbers(c), None
        elif levels is not None and said.get(c.name) in ("binary", "categorical", "label"):
            kind = said[c.name]
        elif c.name not in said and not guessed and kind in ("binary", "categorical") and c.name.lower() in _LABELS:
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
