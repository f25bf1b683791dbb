"""Charts and reports: altair charts of a chain and of a release, and one self-contained HTML page.

* ``release.plot_*`` and ``chain.plot_*`` give altair charts for a notebook; ``chart.save("x.svg")``
  (or ``.png``, ``.pdf``) writes a file without a browser.
* `report` writes the public report of a release: guarantee, long run, transitions, mixing, errors,
  how to cite and load it, from the published file alone.
* `curator_report` holds a release against the sensitive counts, for the curator's eyes.

They need the extra: ``pip install 'dpmarkov[report]'``.
"""

from dpmarkov.charts.writing import curator_report, report

__all__ = ["curator_report", "report"]
