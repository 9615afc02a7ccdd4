"""Trained models that come with elman or are fetched: their registry, and where they are kept."""
