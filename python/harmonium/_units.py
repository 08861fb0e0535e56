"""Descriptions of layers, from which machines are built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

__all__ = [
    "Binary",
    "Binomial",
    "DReLU",
    "Gaussian",
    "Layer",
    "LayerLike",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Potts",
    "ReLU",
    "Spin",
    "units",
]


@dataclass(frozen=True)
class Layer:
    """``n`` units of one kind. Made by :func:`Binary`, :func:`Spin`, :func:`Potts` and so on.

    >>> import harmonium as hm
    >>> hm.Potts(53, states=21)
    Layer(n=53, kind='potts', states=21)
    """

    n: int
    kind: str = "binary"
    states: int | None = None
    #: Shape of negative binomial counts: their variance is m + m²/r, m being the mean.
    r: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not hasattr(self.n, "__index__"):
            raise TypeError(f"n: expected a number of units, got {self.n!r}")
        if self.n < 0:
            raise ValueError(f"n: expected 0 or more units, got {self.n}")
        if self.kind not in _KINDS:
            from ._names import suggestion

            raise ValueError(f"kind: unknown kind of units {self.kind!r}; {suggestion(self.kind, _KINDS)}")
        if (self.states is not None) != (self.kind in ("potts", "binomial", "negative_binomial", "ordinal")):
            raise ValueError("states: needed by potts, binomial, negative_binomial and ordinal units, and only by them")
        if (self.r is not None) != (self.kind == "negative_binomial"):
            raise ValueError("r: needed by negative_binomial units, and only by them")
        if self.r is not None and not (self.r > 0 and (16 * self.r) % 1 == 0):
            raise ValueError(f"r: expected a multiple of 1/16 above zero, got {self.r}")

    def _spec(self) -> Any:
        """The kind as the model file writes it."""
        if self.kind == "potts":
            return {"potts": {"q": self.states}}
        if self.kind in ("binomial", "ordinal"):
            return {self.kind: {"n": self.states}}
        if self.r is not None:
            return {"negative_binomial": {"shape": int(16 * self.r), "n": self.states}}
        return self.kind

    def __str__(self) -> str:
        return f"{self.n} {kind_name(self.kind, self.states, self.r)}"


_KINDS = ("binary", "spin", "potts", "gaussian", "relu", "drelu", "binomial", "poisson", "negative_binomial", "ordinal")

LayerLike = Union[int, Layer]


def kind_name(kind: str, states: int | None, r: float | None = None) -> str:
    name = {"relu": "ReLU", "drelu": "dReLU", "negative_binomial": "NegativeBinomial"}.get(kind, kind.capitalize())
    if r is not None:
        return f"{name}(r={r:g}, n={states})"
    return name if states is None else f"{name}({states})"


def Binary(n: int) -> Layer:  # noqa: N802 - a kind's name
    """``n`` units in {0, 1}."""
    return Layer(n, "binary")


def Spin(n: int) -> Layer:  # noqa: N802
    """``n`` units in {-1, +1}."""
    return Layer(n, "spin")


def Potts(n: int, states: int) -> Layer:  # noqa: N802
    """``n`` units, each in one of ``states`` states, written 0, 1, … in data."""
    return Layer(n, "potts", states)


def Gaussian(n: int) -> Layer:  # noqa: N802
    """``n`` real units."""
    return Layer(n, "gaussian")


def ReLU(n: int) -> Layer:  # noqa: N802
    """``n`` real units that are not negative."""
    return Layer(n, "relu")


def DReLU(n: int) -> Layer:  # noqa: N802
    """``n`` real units with a quadratic energy on either side of zero."""
    return Layer(n, "drelu")


def Binomial(n: int, most: int) -> Layer:  # noqa: N802
    """``n`` counts from 0 to ``most``."""
    return Layer(n, "binomial", most)


def Poisson(n: int) -> Layer:  # noqa: N802
    """``n`` counts without an upper limit."""
    return Layer(n, "poisson")


def NegativeBinomial(n: int, r: float, most: int) -> Layer:  # noqa: N802
    """``n`` counts whose variance m + m²/r exceeds their mean m. ``r`` is a multiple of 1/16; ``most`` is the largest count,
    which makes every machine of them proper and is best far above the counts of the data.

    >>> str(NegativeBinomial(3, r=1.5, most=256))
    '3 NegativeBinomial(r=1.5, n=256)'
    """
    return Layer(n, "negative_binomial", most, r)


def Ordinal(n: int, most: int) -> Layer:  # noqa: N802
    """``n`` whole numbers from 0 to ``most`` (at most 1023) that occur with any frequencies: counts with spikes, grades."""
    return Layer(n, "ordinal", most)


def units(name: str, n: int) -> Layer:
    """``n`` units of the kind with this name: ``"spin"``, ``"potts:21"``, ``"binomial:16"``, ``"neg_binomial:1.5:256"``.

    >>> units("potts:3", 4)
    Layer(n=4, kind='potts', states=3)
    """
    kind, _, states = name.partition(":")
    if kind == "neg_binomial":
        r, _, most = states.partition(":")
        try:
            return NegativeBinomial(n, float(r), int(most))
        except ValueError as e:
            raise ValueError(f"{name!r}: expected a shape and a largest count, as in neg_binomial:1.5:256") from e
    if states and not states.isdigit():
        raise ValueError(f"{name!r}: expected a number after the colon, as in potts:3")
    return Layer(n, kind, int(states) if states else None)


def as_layer(layer: LayerLike, what: str) -> Layer:
    """The layer, or binary units if only their number is given."""
    if isinstance(layer, Layer):
        return layer
    if hasattr(layer, "__index__") and not isinstance(layer, bool):
        return Layer(int(layer))
    raise TypeError(f"{what}: expected a layer such as Binary(10), or a number of binary units, got {layer!r}")
