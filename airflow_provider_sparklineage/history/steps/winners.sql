-- Which event of a run says what it read, and which what it wrote: the last that ends the run and
-- has any access on that side, else the last that has. A START of ours is what was expected.
WITH sides AS (
  SELECT
    f.run_id, f.event_id, f.event_time, f.event_type, COALESCE(f.is_ours, FALSE) AS is_ours, a.side
  FROM facts AS f, UNNEST(f.accesses) AS t(a)
), graded AS (
  SELECT
    run_id, event_id, side,
    MAX(event_time) AS event_time,
    MAX(
      CASE
        WHEN event_type IN ('COMPLETE', 'FAIL', 'ABORT') THEN 2
        WHEN event_type = 'START' AND is_ours THEN 0
        ELSE 1
      END
    ) AS grade
  FROM sides
  GROUP BY run_id, event_id, side
), ranked AS (
  SELECT
    run_id, event_id, side, grade,
    ROW_NUMBER() OVER (
      PARTITION BY run_id, side
      ORDER BY grade DESC, event_time DESC NULLS LAST, event_id DESC
    ) AS place
  FROM graded
)
SELECT run_id, event_id, side, grade = 0 AS is_expected
FROM ranked
WHERE place = 1
