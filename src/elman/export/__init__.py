"""Trained models in the formats of other programs, each compared with the model that it was written from."""
