-- Versions that a read of a cell got without being writes to that cell: writes to the whole dataset,
-- or to what may contain the cell, and to cells of other dimensions. What came before the last
-- replacing write to the cell itself is not in it any more.
WITH coarse AS (
  SELECT *
  FROM changes
  WHERE cell IS NULL
), concerned AS (
  SELECT DISTINCT namespace, name
  FROM coarse
), events AS (
  SELECT
    namespace, name, run_id, valid_from AS happened_at, CAST(1 AS INTEGER) AS turn,
    FALSE AS is_read, TRUE AS is_certain,
    extent = 'all' AND mode IN ('overwrite', 'create', 'truncate', 'drop', 'removed') AS is_replacing,
    extent, CAST(NULL AS VARCHAR) AS partition, CAST(NULL AS VARCHAR) AS cell,
    CAST(NULL AS VARCHAR) AS dims, evidence, first_partition, last_partition, valid_to,
    uncertain_from, CAST(NULL AS TIMESTAMP) AS cleared_at, CAST(NULL AS VARCHAR) AS cleared_by
  FROM coarse
  UNION ALL
  SELECT
    t.namespace, t.name, t.run_id, t.happened_at, t.turn, TRUE AS is_read, t.is_certain,
    FALSE AS is_replacing, t.extent, t.partition, t.cell, t.dims, t.evidence,
    CAST(NULL AS VARCHAR) AS first_partition, CAST(NULL AS VARCHAR) AS last_partition,
    CAST(NULL AS TIMESTAMP) AS valid_to, CAST(NULL AS TIMESTAMP) AS uncertain_from, t.cleared_at,
    t.cleared_by
  FROM timeline AS t
  JOIN concerned AS c ON c.namespace = t.namespace AND c.name = t.name
  WHERE t.is_read
), numbered AS (
  SELECT
    *,
    CAST(SUM(CASE WHEN is_replacing THEN 1 ELSE 0 END) OVER until_then AS BIGINT) AS epoch
  FROM events
  WINDOW until_then AS (
    PARTITION BY namespace, name
    ORDER BY happened_at, turn, run_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  )
), contained AS (
  SELECT
    r.namespace, r.name, r.extent, r.partition, r.cell, r.dims, r.evidence, r.run_id,
    r.happened_at, r.turn, r.is_certain, r.cleared_at, r.cleared_by, v.run_id AS version_run_id,
    v.extent AS version_extent, v.cell AS version_cell, v.happened_at AS valid_from, v.valid_to,
    v.uncertain_from
  FROM numbered AS r
  JOIN numbered AS v
    ON v.namespace = r.namespace AND v.name = r.name AND v.epoch = r.epoch
  WHERE
    r.is_read AND NOT v.is_read
    AND (
      v.extent <> 'range' OR v.first_partition IS NULL OR v.last_partition IS NULL
      OR LENGTH(r.partition) <> LENGTH(v.first_partition)
      OR LENGTH(r.partition) <> LENGTH(v.last_partition)
      OR r.partition BETWEEN v.first_partition AND v.last_partition
    )
), shapes AS (
  SELECT DISTINCT namespace, name, dims, is_read
  FROM timeline
), pairs AS (
  SELECT
    r.namespace, r.name, r.dims AS read_dims, v.dims AS written_dims,
    -- Of no dimensions in common DuckDB before 2.0 makes null.
    COALESCE(ARRAY_TO_STRING(
      LIST_FILTER(
        STRING_SPLIT(r.dims, ','), lambda dim: LIST_CONTAINS(STRING_SPLIT(v.dims, ','), dim)
      ),
      ','
    ), '') AS common_dims
  FROM shapes AS r
  JOIN shapes AS v ON v.namespace = r.namespace AND v.name = r.name AND v.dims <> r.dims
  WHERE r.is_read AND NOT v.is_read
), projected AS (
  SELECT
    t.*, p.read_dims, p.written_dims, p.common_dims,
    COALESCE(ARRAY_TO_STRING(
      LIST_FILTER(
        STRING_SPLIT(t.cell, '/'),
        lambda part: LIST_CONTAINS(STRING_SPLIT(p.common_dims, ','), SPLIT_PART(part, '=', 1))
      ),
      '/'
    ), '') AS common_cell
  FROM timeline AS t
  JOIN pairs AS p
    ON p.namespace = t.namespace AND p.name = t.name
    AND t.dims = CASE WHEN t.is_read THEN p.read_dims ELSE p.written_dims END
), met AS (
  SELECT
    r.namespace, r.name, r.extent, r.partition, r.cell, r.dims, r.evidence, r.run_id,
    r.happened_at, r.turn,
    r.is_certain AND r.common_dims IN (r.read_dims, r.written_dims) AS is_certain,
    r.cleared_at, r.cleared_by, v.run_id AS version_run_id, v.extent AS version_extent,
    v.cell AS version_cell, v.happened_at AS valid_from, v.valid_to, v.uncertain_from
  FROM projected AS r
  JOIN projected AS v
    ON v.namespace = r.namespace AND v.name = r.name AND v.read_dims = r.read_dims
    AND v.written_dims = r.written_dims AND v.common_cell = r.common_cell
  WHERE r.is_read AND NOT v.is_read
), every AS (
  SELECT * FROM contained
  UNION ALL
  SELECT * FROM met
)
SELECT
  namespace, name, extent, partition, cell, dims, evidence, run_id, happened_at, version_run_id,
  version_extent, version_cell, valid_from, valid_to,
  is_certain AND (
    uncertain_from IS NULL OR uncertain_from > happened_at
    OR (uncertain_from = happened_at AND turn = 0 AND uncertain_from > valid_from)
  ) AS is_certain
FROM every
WHERE
  version_run_id <> run_id
  AND (valid_from < happened_at OR (valid_from = happened_at AND turn = 2))
  AND (valid_to IS NULL OR valid_to > happened_at OR (valid_to = happened_at AND turn = 0))
  AND (
    cleared_at IS NULL OR valid_from > cleared_at
    OR (valid_from = cleared_at AND version_run_id > cleared_by)
  )
