"""Networks: their parts, and what joins them."""

import elman.config  # noqa: F401 - plug-ins are loaded before elman's own parts
