"""How a chain shows itself: one line at the prompt, a small table in a notebook."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

__all__ = ["in_html", "in_one_line"]

_NAMED = 4  # labels in the line
_SHOWN = 10  # rows and columns in the table


def in_one_line(P: Any, labels: Sequence[Hashable]) -> str:
    """Describe a chain by its states and how many transitions are possible.

    Examples
    --------
    >>> import numpy as np
    >>> in_one_line(np.array([[0.9, 0.1], [1.0, 0.0]]), ["sun", "rain"])
    "MarkovChain(2 states: 'sun', 'rain'; 3 of 4 transitions possible)"
    """
    n = len(labels)
    names = [repr(label) for label in islice(labels, _NAMED)] + ["..."] * (n > _NAMED)
    return f"MarkovChain({_count(n)}: {', '.join(names)}; {_possible(P, n)})"


def in_html(P: Any, labels: Sequence[Hashable]) -> str:
    """Lay out the first states as a table; labels are escaped, as anyone may have written them."""
    n = len(labels)
    shown = range(min(n, _SHOWN))
    more = "<th>&hellip;</th>" if n > _SHOWN else ""
    head = "".join(f"<th>{escape(str(labels[j]))}</th>" for j in shown)
    body = "".join(
        f"<tr><th>{escape(str(labels[i]))}</th>"
        + "".join(f"<td>{P[i, j]:.4g}</td>" for j in shown)
        + "</tr>"
        for i in shown
    ) + (f"<tr>{more}</tr>" if more else "")
    caption = f"Markov chain, {_count(n)}, {_possible(P, n)}"
    return (
        f"<table><caption>{caption}</caption><thead><tr><th></th>{head}{more}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _count(n: int) -> str:
    return f"{n:,} state" + "s" * (n != 1)


def _possible(P: Any, n: int) -> str:
    return f"{int((P > 0).sum()):,} of {n * n:,} transitions possible"
