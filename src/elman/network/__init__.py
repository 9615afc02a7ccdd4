"""Networks: their parts, and what joins them."""

import elman.config  # noqa: F401 - plug-ins are loaded before the parts beside which they stand
