"""Sizes and settings of the applications for their references, which run where fluorite is not; a test compares the two."""

from __future__ import annotations

STAGES = 8
"""stencil_chain: stencils, one after the other."""

CELL = 8
LEVELS = 10
"""bilateral_grid: pixels of one cell of the grid, on both axes; cells of brightness between 0 and 1."""

PATCH = 7
SEARCH = 7
"""nl_means: pixels along the side of a patch, and of the neighbourhood in which patches are compared."""

MARGIN = (12, 16)
BLACK, WHITE, GAMMA, CONTRAST, KELVIN = 25, 1023, 2.0, 50.0, 3700.0
"""camera: raw rows and columns outside the picture on each side; levels of black and white, tone curve, temperature of the light."""

DEPTH = 8
TONES = 8
"""local_laplacian: levels of the pyramids; brightnesses at which the image is remapped."""
