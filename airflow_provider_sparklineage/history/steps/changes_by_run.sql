-- The changes once more, for who asks what a run wrote.
SELECT
  namespace, name, extent, partition, cell, dims, first_partition, last_partition, run_id, mode,
  evidence, valid_from, valid_to, replaced_by, is_certain, uncertain_from
FROM changes
