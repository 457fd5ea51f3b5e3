"""Sizes and settings of the applications for their references, which run where fluorite is not; a test compares the two."""

from __future__ import annotations

import math

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

PYRAMID = 8
"""interpolate: levels of the pyramid."""

SHIFTS = 16
COARSER = 5
REACH = 5
"""lens_blur: pixels that something may have moved between the pictures; levels over which depths are smoothed; pixels of blur at most."""

RADIUS = 13
"""max_filter: of the disc."""

SIDE = 256
"""fft_convolution: pixels along the side of the picture."""

SHADES = 256
"""hist: brightnesses that are told apart."""

CHANNELS = 3
"""iir_blur: colours of the picture."""

_ROOT = math.sqrt(3.0)
COEFFICIENTS = tuple(c / (4 * math.sqrt(2.0)) for c in (1 + _ROOT, 3 + _ROOT, 3 - _ROOT, 1 - _ROOT))
"""wavelet: the filter of sums."""

SMALLER = (3, 5)
LOBES = 3
"""resize: so many pixels from so many; lobes of the filter."""
