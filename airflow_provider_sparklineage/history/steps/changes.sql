-- How long each write was what is there. The windows run from the last write to the first, so that
-- what comes after a write is what they have seen: the other way round Spark looks at all of it for
-- each row.
WITH next AS (
  SELECT
        *,
    LAST_VALUE(CASE WHEN extent = 'partition' AND is_replacing THEN valid_from END IGNORE NULLS)
      OVER in_cell AS cell_at,
    LAST_VALUE(CASE WHEN extent = 'partition' AND is_replacing THEN run_id END IGNORE NULLS)
      OVER in_cell AS cell_by,
    LAST_VALUE(CASE WHEN extent = 'partition' AND is_disturbing THEN valid_from END IGNORE NULLS)
      OVER in_cell AS cell_disturbed_at
  FROM writes
  WINDOW in_cell AS (
    PARTITION BY namespace, name, cell
    ORDER BY valid_from DESC, run_id DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
), whole AS (
  SELECT
        *,
    LAST_VALUE(CASE WHEN extent = 'all' AND is_replacing THEN valid_from END IGNORE NULLS)
      OVER in_dataset AS all_at,
    LAST_VALUE(CASE WHEN extent = 'all' AND is_replacing THEN run_id END IGNORE NULLS)
      OVER in_dataset AS all_by,
    LAST_VALUE(
      CASE WHEN extent NOT IN ('partition', 'range') AND is_disturbing THEN valid_from END
      IGNORE NULLS
    ) OVER in_dataset AS disturbed_at,
    LAST_VALUE(CASE WHEN is_disturbing THEN valid_from END IGNORE NULLS)
      OVER in_dataset AS any_disturbed_at
  FROM next
  -- A run's own writes to cells come after its write to the whole.
  WINDOW in_dataset AS (
    PARTITION BY namespace, name
    ORDER BY valid_from DESC, run_id DESC, CASE WHEN cell IS NULL THEN 1 ELSE 0 END
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
), ended AS (
  SELECT
    w.*, c.covered_at, c.covered_by,
    CASE
      WHEN w.mode IN ('truncate', 'drop', 'removed') THEN w.valid_from
      ELSE LEAST(w.cell_at, w.all_at, c.covered_at)
    END AS valid_to,
    CASE
      WHEN w.extent NOT IN ('partition', 'all') THEN w.valid_from
      -- A write to some of it leaves open how much of the whole is left.
      WHEN w.extent = 'all' THEN w.any_disturbed_at
      ELSE LEAST(w.cell_disturbed_at, w.disturbed_at, r.disturbed_at)
    END AS doubted_at
  FROM whole AS w
  LEFT JOIN covered AS c
    ON c.run_id = w.run_id AND c.namespace = w.namespace AND c.name = w.name AND c.cell = w.cell
  LEFT JOIN ranged AS r
    ON r.run_id = w.run_id AND r.namespace = w.namespace AND r.name = w.name AND r.cell = w.cell
), doubted AS (
  SELECT
        *,
    CASE
      WHEN valid_to IS NULL OR doubted_at < valid_to OR doubted_at = valid_from THEN doubted_at
    END AS uncertain_from
  FROM ended
)
SELECT
  namespace, name, extent, partition, cell, dims, first_partition, last_partition, run_id, mode,
  evidence, valid_from, valid_to,
  CASE
    WHEN mode NOT IN ('truncate', 'drop', 'removed') THEN LEAST(
      CASE WHEN cell_at = valid_to THEN cell_by END,
      CASE WHEN all_at = valid_to THEN all_by END,
      CASE WHEN covered_at = valid_to THEN covered_by END
    )
  END AS replaced_by,
  uncertain_from IS NULL AS is_certain,
  uncertain_from
FROM doubted
