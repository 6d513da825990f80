"""What Spark reported of one application: accumulated, repaired, and bound to what was observed."""
