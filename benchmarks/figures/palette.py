"""The colours of every figure and the endings of its file; nothing here loads matplotlib."""

from __future__ import annotations

PALETTE = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#0072B2", "#D55E00", "#999999")
"""The colour-blind safe palette of Okabe and Ito, black left out."""
INK = "#222222"
DARK, LIGHT = "#212121", "#fefefe"
"""Letters on a coloured block: INK on paper turns light where a page is dark, these stay."""
FAINT = "#d0d0d0"
GRID = "#e6e6e6"
MARK = "#B2182B"
"""Lines that a reader must not miss: the makespan, a bound."""
LINES = (*(colour for colour in PALETTE if colour != "#F0E442"), INK)
"""What can be seen as a line on white."""
FORMATS = (".svg", ".png", ".pdf")
