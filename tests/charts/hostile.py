"""Labels that somebody filled with markup, script, emoji and right-to-left text; and a target."""

from __future__ import annotations

TARGET = {"epsilon": 1.0, "delta": 1e-6, "unit": "transition"}
HOSTILE = (
    '<img src=x onerror="alert(1)">',
    "\"quoted' & </script><script>alert(2)</script>",
    "🚕 taxi 👩‍👩‍👧",
    "مرحبا بالعالم",
)
