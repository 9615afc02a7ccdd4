"""Networks and learning rules of recurrent learning, side by side on classic tasks."""
