"""An example of a plug-in of elman: a package with a cell and an output activation."""
