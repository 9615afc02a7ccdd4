"""n-gram models: estimated by Kneser-Ney smoothing, read from ARPA files, pruned, and over a network's vocabulary."""
