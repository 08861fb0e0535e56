"""Layers of units, before they are part of a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

__all__ = [
    "Binary",
    "Binomial",
    "DReLU",
    "Gaussian",
    "Layer",
    "LayerLike",
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

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not hasattr(self.n, "__index__"):
            raise TypeError(f"n: expected a number of units, got {self.n!r}")
        if self.n < 0:
            raise ValueError(f"n: expected 0 or more units, got {self.n}")
        if self.kind not in _KINDS:
            from ._names import suggestion

            raise ValueError(f"kind: unknown kind of units {self.kind!r}; {suggestion(self.kind, _KINDS)}")
        if (self.states is not None) != (self.kind in ("potts", "binomial")):
            raise ValueError("states: needed by potts and binomial units, and only by them")

    def _spec(self) -> Any:
        """The kind as the model file writes it."""
        if self.kind == "potts":
            return {"potts": {"q": self.states}}
        if self.kind == "binomial":
            return {"binomial": {"n": self.states}}
        return self.kind

    def __str__(self) -> str:
        return f"{self.n} {_words(self.kind, self.states)}"


_KINDS = ("binary", "spin", "potts", "gaussian", "relu", "drelu", "binomial", "poisson")

LayerLike = Union[int, Layer]


def _words(kind: str, states: int | None) -> str:
    name = {"relu": "ReLU", "drelu": "dReLU"}.get(kind, kind.capitalize())
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
    """``n`` counts without a largest one."""
    return Layer(n, "poisson")


def units(name: str, n: int) -> Layer:
    """``n`` units of the kind that a name such as ``"spin"``, ``"potts:21"`` or ``"binomial:16"`` says.

    >>> units("potts:3", 4)
    Layer(n=4, kind='potts', states=3)
    """
    kind, _, states = name.partition(":")
    if states and not states.isdigit():
        raise ValueError(f"{name!r}: expected a number after the colon, as in potts:3")
    return Layer(n, kind, int(states) if states else None)


def as_layer(layer: LayerLike, what: str) -> Layer:
    """A layer, or binary units where only their number is given."""
    if isinstance(layer, Layer):
        return layer
    if hasattr(layer, "__index__") and not isinstance(layer, bool):
        return Layer(int(layer))
    raise TypeError(f"{what}: expected a layer such as Binary(10), or a number of binary units, got {layer!r}")
