-- The writes that count, one of each run to each cell: of runs that completed, and observed. Of what
-- a run has several of (a dataset that it lists twice), the one that says most.
WITH counted AS (
  SELECT
    a.run_id, a.accessed_at AS valid_from, a.namespace, a.name, a.extent, a.partition, a.cell,
    a.dims, a.first_partition, a.last_partition, a.evidence, COALESCE(a.mode, 'unknown') AS mode
  FROM accesses AS a
  JOIN runs AS r ON r.run_id = a.run_id
  WHERE
    a.side = 'write' AND r.state = 'COMPLETE' AND NOT a.is_failed AND NOT a.is_expected
    AND a.accessed_at IS NOT NULL AND a.extent <> 'none'
    AND COALESCE(a.mode, 'unknown') NOT IN ('alter', 'rename')
), judged AS (
  SELECT
        *,
    mode IN ('overwrite', 'create', 'truncate', 'drop', 'removed') AS is_replacing
  FROM counted
), ranked AS (
  SELECT
        *,
    ROW_NUMBER() OVER (
      PARTITION BY run_id, namespace, name, cell
      ORDER BY
        CASE extent WHEN 'all' THEN 0 WHEN 'range' THEN 1 WHEN 'condition' THEN 2 ELSE 3 END,
        CASE WHEN is_replacing THEN 0 ELSE 1 END,
        mode, first_partition, last_partition, evidence
    ) AS place
  FROM judged
)
SELECT
  run_id, valid_from, namespace, name, extent, partition, cell, dims, first_partition,
  last_partition, evidence, mode, is_replacing,
  -- After it nobody knows whether what was there before still is.
  mode = 'unknown' OR (is_replacing AND extent NOT IN ('partition', 'all')) AS is_disturbing
FROM ranked
WHERE place = 1
