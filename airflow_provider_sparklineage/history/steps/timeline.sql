-- Reads and writes of each cell in their order, with how often it was replaced until then (epoch):
-- a read got what was written in its own epoch. Writes come before reads of the same time; where
-- a run ends when it starts, what it read comes before what was written then.
WITH events AS (
  SELECT
    namespace, name, extent, partition, cell, dims, evidence, run_id, valid_from AS happened_at,
    CAST(1 AS INTEGER) AS turn, FALSE AS is_read, TRUE AS is_certain,
    mode IN ('overwrite', 'create', 'truncate', 'drop', 'removed') AS is_replacing, valid_to, uncertain_from
  FROM changes
  WHERE cell IS NOT NULL
  UNION ALL
  SELECT
    a.namespace, a.name, a.extent, a.partition, a.cell, a.dims, MIN(a.evidence) AS evidence,
    a.run_id, a.accessed_at AS happened_at,
    MAX(CAST(CASE WHEN r.ended <= r.started THEN 0 ELSE 2 END AS INTEGER)) AS turn,
    TRUE AS is_read, BOOL_AND(r.is_time_certain) AS is_certain, FALSE AS is_replacing,
    CAST(NULL AS TIMESTAMP) AS valid_to, CAST(NULL AS TIMESTAMP) AS uncertain_from
  FROM accesses AS a
  JOIN runs AS r ON r.run_id = a.run_id
  WHERE
    a.side = 'read' AND a.cell IS NOT NULL AND NOT a.is_expected AND a.accessed_at IS NOT NULL
  GROUP BY
    a.namespace, a.name, a.extent, a.partition, a.cell, a.dims, a.run_id, a.accessed_at
)
SELECT
  *,
  CAST(SUM(CASE WHEN is_replacing THEN 1 ELSE 0 END) OVER until_then AS BIGINT) AS epoch,
  LAST_VALUE(CASE WHEN is_replacing THEN happened_at END IGNORE NULLS) OVER until_then
    AS cleared_at,
  LAST_VALUE(CASE WHEN is_replacing THEN run_id END IGNORE NULLS) OVER until_then AS cleared_by
FROM events
WINDOW until_then AS (
  PARTITION BY namespace, name, cell
  ORDER BY happened_at, turn, run_id
  ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
)
