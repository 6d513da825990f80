"""The values that all other folders share: the lowest layer of the package, without any I/O."""
