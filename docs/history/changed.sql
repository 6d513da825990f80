-- What changed between yesterday's lineage and today's: which columns came from which, that did not,
-- or no longer do? DuckDB and Spark.
WITH edges AS (
  SELECT
    CAST(r.logical_date AS DATE) AS of_day, r.job, e.out_name, e.out_column, e.in_name, e.in_column,
    e.type, e.subtype
  FROM columns AS e
  JOIN runs AS r ON r.run_id = e.run_id
  WHERE r.state = 'COMPLETE'
), today AS (
  SELECT job, out_name, out_column, in_name, in_column, type, subtype
  FROM edges
  WHERE of_day = DATE '2013-01-02'
), yesterday AS (
  SELECT job, out_name, out_column, in_name, in_column, type, subtype
  FROM edges
  WHERE of_day = DATE '2013-01-01'
)
SELECT 'came' AS what, came.* FROM (SELECT * FROM today EXCEPT SELECT * FROM yesterday) AS came
UNION ALL
SELECT 'went' AS what, went.* FROM (SELECT * FROM yesterday EXCEPT SELECT * FROM today) AS went
ORDER BY what, job, out_name, out_column, in_name, in_column
