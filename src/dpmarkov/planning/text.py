"""Tables as plain text, for logs and pipes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Table", "number"]


class Table(NamedTuple):
    """A table to be shown: plain here, in colour by whoever has a terminal.

    Examples
    --------
    >>> print(Table("Errors", ("epsilon", "row TV"), [("1", "0.0021"), ("10", "-")]))
    Errors
      epsilon  row TV
            1  0.0021
           10       -
    """

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.headers, *self.rows, strict=True)]
        lines = [
            "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in (self.headers, *self.rows)
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines)])


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with some significant digits, and none as a dash.

    Examples
    --------
    >>> number(0.0123456), number(None), number(51234.5)
    ('0.0123', '-', '51,200')
    """
    if value is None:
        return "-"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10**digits else f"{rounded:g}"
