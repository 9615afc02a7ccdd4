"""What a model of text can be asked: how hard each word was, what it holds of it, which hypothesis it prefers."""
