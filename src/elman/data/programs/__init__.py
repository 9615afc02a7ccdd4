"""Programs whose results a model learns to compute (Zaremba & Sutskever 2014)."""
