"""Certificates of stability, one file a tier; derivations in docs/stability.md."""
