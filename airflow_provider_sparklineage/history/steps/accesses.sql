-- What the winning events list. Reads happen when the run starts, writes when it ends.
WITH found AS (
  SELECT
    f.event_id, a.side, a.namespace, a.name, a.extent, a.partition, a.cell, a.dims,
    a.first_partition, a.last_partition, a.partition_count, a.condition, a.evidence, a.mode,
    a.row_count, a.byte_count, a.is_failed
  FROM facts AS f, UNNEST(f.accesses) AS t(a)
)
SELECT
  w.run_id,
  -- Whoever may see a DAG may see what it accessed: that is asked for all accesses at once.
  r.dag_id,
  r.job,
  CASE WHEN f.side = 'read' THEN r.started ELSE r.ended END AS accessed_at,
  f.side, f.namespace, f.name, f.extent, f.partition, f.cell, f.dims, f.first_partition,
  f.last_partition, f.partition_count, f.condition, f.evidence, f.mode, f.row_count, f.byte_count,
  COALESCE(f.is_failed, FALSE) AS is_failed,
  w.is_expected
FROM found AS f
JOIN winners AS w ON w.event_id = f.event_id AND w.side = f.side
JOIN runs AS r ON r.run_id = w.run_id
