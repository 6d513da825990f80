"""Speed goals; ``make bench`` prints each with its figure, and which are missed."""
