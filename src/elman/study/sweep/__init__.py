"""One recipe with other settings and seeds: which are best on validation text."""
