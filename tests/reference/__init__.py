"""The papers' equations in NumPy, written symbol by symbol and slowly, for tests to compare `elman` against.

Nothing here imports `elman`, so that a mistake in one of the two shows as a difference.
"""
