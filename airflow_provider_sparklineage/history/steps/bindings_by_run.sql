-- The bindings once more, for who asks what a run read.
SELECT
  namespace, name, extent, partition, cell, dims, first_partition, last_partition, evidence,
  reader_run_id, read_at, version_run_id, version_extent, version_cell, valid_from, valid_to,
  is_certain
FROM bindings
