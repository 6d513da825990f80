-- Which partitions fed daily_delays.avg_dep_delay of 2013-01-10, hop by hop?
-- DuckDB, and Spark from 4.1 on: earlier ones know no recursion, and answer hop by hop.
WITH RECURSIVE hops AS (
  SELECT 0 AS depth, namespace, name, cell, 'avg_dep_delay' AS of_column, run_id
  FROM changes
  WHERE name LIKE '%/daily_delays' AND cell = 'flight_date=2013-01-10' AND valid_to IS NULL
  UNION ALL
  SELECT
    h.depth + 1, b.namespace, b.name, COALESCE(b.version_cell, b.cell, v.cell), e.in_column,
    COALESCE(b.version_run_id, v.run_id)
  FROM hops AS h
  JOIN columns AS e
    ON e.run_id = h.run_id AND e.out_namespace = h.namespace AND e.out_name = h.name
    AND (e.out_column = h.of_column OR e.out_column IS NULL) -- null: a condition of all columns
  JOIN bindings AS b
    ON b.reader_run_id = h.run_id AND b.namespace = e.in_namespace AND b.name = e.in_name
  LEFT JOIN changes AS v -- a read of all found all that was there
    ON b.cell IS NULL AND v.namespace = b.namespace AND v.name = b.name
    AND v.valid_from <= b.read_at AND (v.valid_to IS NULL OR v.valid_to > b.read_at)
  WHERE h.depth < 10
)
SELECT DISTINCT h.depth, h.name, h.cell, h.of_column, r.job, r.ended
FROM hops AS h
LEFT JOIN runs AS r ON r.run_id = h.run_id
ORDER BY h.depth, h.name, h.cell, h.of_column
