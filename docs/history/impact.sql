-- The flights of 2013-01-15 were wrong: which partitions are wrong now, through which columns, and
-- which task runs are to be cleared, in this order?
-- DuckDB, and Spark from 4.1 on: earlier ones know no recursion, and answer hop by hop.
WITH RECURSIVE hops AS (
  SELECT
    0 AS depth, namespace, name, cell, run_id, valid_from, valid_to,
    CAST(NULL AS STRING) AS from_name
  FROM changes
  WHERE name LIKE '%/flights' AND cell = 'flight_date=2013-01-15'
  UNION ALL
  SELECT h.depth + 1, w.namespace, w.name, w.cell, w.run_id, w.valid_from, w.valid_to, h.name
  FROM hops AS h
  JOIN bindings AS b
    ON b.namespace = h.namespace AND b.name = h.name AND (
      (b.version_run_id = h.run_id AND b.version_cell = h.cell)
      OR ( -- a read of all found all that was there
        b.cell IS NULL AND h.valid_from <= b.read_at
        AND (h.valid_to IS NULL OR h.valid_to > b.read_at)
      )
    )
  JOIN changes AS w ON w.run_id = b.reader_run_id
  WHERE h.depth < 10
)
SELECT DISTINCT
  h.depth, h.name, h.cell, e.in_column, e.out_column, r.dag_id, r.task_id, r.dag_run_id, r.ended
FROM hops AS h
JOIN runs AS r ON r.run_id = h.run_id
LEFT JOIN columns AS e
  ON e.run_id = h.run_id AND e.out_name = h.name AND e.in_name = h.from_name
WHERE h.depth > 0 AND h.valid_to IS NULL
ORDER BY h.depth, r.ended, h.name, h.cell, e.in_column, e.out_column
