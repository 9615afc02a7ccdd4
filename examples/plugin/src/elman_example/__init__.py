"""An example of a plug-in of elman: a package with a cell, an output, an output activation and a penalty."""
