"""What all charts share: altair, colours, names and numbers.

Every chart is drawn from plain values inside its own specification. State labels are text written
by anybody: they reach a chart as data only, never as part of an expression or of a field's name,
and are shown as they stand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpmarkov.errors import DpmarkovError

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "BLANK",
    "FAINT",
    "HEIGHT",
    "INK",
    "PRIVATE",
    "TRUE",
    "WIDTH",
    "altair",
    "names_of",
    "rounded",
    "rounded_up",
    "table",
]

# Told apart in any kind of colour blindness, in grey, and on white.
PRIVATE, TRUE, INK, FAINT, BLANK = "#1f6fb4", "#c65d00", "#222222", "#8a8f98", "#eef0f3"
WIDTH, HEIGHT = 620, 320
_LONGEST = 60


def altair() -> Any:
    """Import altair, or say how to get it."""
    try:
        import_module("vl_convert")  # what saves charts, and what a report runs on
        return import_module("altair")
    except ImportError:
        raise DpmarkovError(
            "charts and reports need altair and vl-convert: pip install 'dpmarkov[report]'"
        ) from None


def table(rows: Iterable[dict[str, Any]]) -> alt.Data:
    """Hand rows to a chart as they are."""
    data: alt.Data = altair().Data(values=list(rows))
    return data


def names_of(labels: Sequence[Any]) -> list[str]:
    """Write labels as text, each different from all others.

    Examples
    --------
    >>> names_of([1, "1", "home", ""])
    ['1', "'1'", 'home', "''"]
    """
    texts = [_written(label) for label in labels]
    often = Counter(texts)
    names = [
        repr(label) if isinstance(label, str) and (often[text] > 1 or not text.strip()) else text
        for label, text in zip(labels, texts, strict=True)
    ]
    again = Counter(names)  # long ones that begin alike
    return [f"{name} ({place})" if again[name] > 1 else name for place, name in enumerate(names, 1)]


def _written(label: Any) -> str:
    text = " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)
    text = " ".join(text.split()) if text.strip() else text
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def rounded(value: float, digits: int = 4) -> float:
    """Keep some significant digits: charts are read, not computed with.

    Examples
    --------
    >>> rounded(0.123456789), rounded(0.0)
    (0.1235, 0.0)
    """
    return float(f"{value:.{digits}g}") if math.isfinite(value) else 0.0


def rounded_up(value: float) -> float:
    """Keep four digits of a delta, never fewer than it takes not to understate it.

    Examples
    --------
    >>> rounded_up(1.23451e-7)
    1.235e-07
    """
    return float(f"{value * (1 + 5.1e-4):.4g}")
