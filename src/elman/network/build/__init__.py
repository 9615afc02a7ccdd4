"""From the records of a recipe to the parts of a network, one file a part; `elman.network.build.model` joins them."""
