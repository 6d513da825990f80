"""Speed goals as ratios; ``make bench`` prints them and fails when one is missed."""
