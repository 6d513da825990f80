"""The values that all stations of the flow speak of. Pure, and the lowest layer of the package."""
