-- Which versions each read got. A read of more than one partition is a row without a version: what
-- it got is asked of `changes`.
WITH reads AS (
  SELECT * FROM timeline WHERE is_read
), versions AS (
  SELECT * FROM timeline WHERE NOT is_read
), elsewhere AS (
  SELECT DISTINCT run_id, namespace, name, cell
  FROM beyond
), found AS (
  SELECT
    r.namespace, r.name, r.extent, r.partition, r.cell, r.dims, r.evidence, r.run_id,
    r.happened_at, v.run_id AS version_run_id, v.extent AS version_extent, v.cell AS version_cell,
    v.happened_at AS valid_from, v.valid_to,
    r.is_certain AND (
      v.uncertain_from IS NULL OR v.uncertain_from > r.happened_at
      OR (v.uncertain_from = r.happened_at AND r.turn = 0 AND v.uncertain_from > v.happened_at)
    ) AS is_certain
  FROM reads AS r
  LEFT JOIN versions AS v
    ON v.namespace = r.namespace AND v.name = r.name AND v.cell = r.cell AND v.epoch = r.epoch
    AND v.run_id <> r.run_id
    AND (v.happened_at < r.happened_at OR (v.happened_at = r.happened_at AND r.turn = 2))
    AND (
      v.valid_to IS NULL OR v.valid_to > r.happened_at
      OR (v.valid_to = r.happened_at AND r.turn = 0)
    )
), coarse AS (
  SELECT
    a.namespace, a.name, a.extent, a.first_partition, a.last_partition, a.evidence,
    a.run_id, a.accessed_at, r.is_time_certain,
    ROW_NUMBER() OVER (
      PARTITION BY a.run_id, a.namespace, a.name
      ORDER BY
        CASE a.extent WHEN 'all' THEN 0 WHEN 'unknown' THEN 1 WHEN 'range' THEN 2 ELSE 3 END,
        a.first_partition, a.last_partition, a.evidence
    ) AS place
  FROM accesses AS a
  JOIN runs AS r ON r.run_id = a.run_id
  WHERE
    a.side = 'read' AND a.cell IS NULL AND a.extent <> 'none' AND NOT a.is_expected
    AND a.accessed_at IS NOT NULL
)
SELECT
  f.namespace, f.name, f.extent, f.partition, f.cell, f.dims,
  CAST(NULL AS VARCHAR) AS first_partition, CAST(NULL AS VARCHAR) AS last_partition, f.evidence,
  f.run_id AS reader_run_id, f.happened_at AS read_at, f.version_run_id, f.version_extent,
  f.version_cell, f.valid_from, f.valid_to, f.is_certain
FROM found AS f
LEFT JOIN elsewhere AS e
  ON e.run_id = f.run_id AND e.namespace = f.namespace AND e.name = f.name AND e.cell = f.cell
WHERE f.version_run_id IS NOT NULL OR e.run_id IS NULL
UNION ALL
SELECT
  namespace, name, extent, partition, cell, dims, NULL, NULL, evidence, run_id, happened_at,
  version_run_id, version_extent, version_cell, valid_from, valid_to, is_certain
FROM beyond
UNION ALL
SELECT
  namespace, name, extent, NULL, NULL, NULL, first_partition, last_partition, evidence, run_id,
  accessed_at, NULL, NULL, NULL, NULL, NULL, is_time_certain
FROM coarse
WHERE place = 1
