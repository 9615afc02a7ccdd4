"""From the records of a recipe to the parts of a network, one file a part; `elman.build` joins them."""
