"""A trained model behind a page and a JSON interface."""
