-- Which partitions are built from data that has been rewritten since, and by whom?
-- What is made of these in turn is found as in impact.sql. DuckDB and Spark.
SELECT
  c.name, c.cell, r.job, b.name AS built_from, b.cell AS its_cell, b.valid_to AS rewritten_at,
  v.replaced_by
FROM changes AS c
JOIN runs AS r ON r.run_id = c.run_id
JOIN bindings AS b ON b.reader_run_id = c.run_id
JOIN changes AS v
  ON v.run_id = b.version_run_id AND v.namespace = b.namespace AND v.name = b.name
  AND v.cell = b.version_cell
WHERE c.valid_to IS NULL AND b.valid_to IS NOT NULL AND v.replaced_by <> c.run_id
ORDER BY c.name, c.cell
