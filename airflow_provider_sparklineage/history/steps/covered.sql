-- Which writes to a cell were replaced by one to a coarser cell that contains it, and by which first:
-- dt=2024-10-15/region=eu by dt=2024-10-15. Empty where all writes name the same dimensions.
WITH shapes AS (
  SELECT DISTINCT namespace, name, dims
  FROM writes
  WHERE cell IS NOT NULL
), pairs AS (
  SELECT fine.namespace, fine.name, fine.dims, coarse.dims AS coarse_dims
  FROM shapes AS fine
  JOIN shapes AS coarse
    ON coarse.namespace = fine.namespace AND coarse.name = fine.name AND coarse.dims <> fine.dims
    AND coarse.dims = ARRAY_TO_STRING(
      LIST_FILTER(
        STRING_SPLIT(fine.dims, ','),
        lambda dim: LIST_CONTAINS(STRING_SPLIT(coarse.dims, ','), dim)
      ),
      ','
    )
), projected AS (
  SELECT
    w.run_id, w.valid_from, w.namespace, w.name, w.cell, p.coarse_dims,
    ARRAY_TO_STRING(
      LIST_FILTER(
        STRING_SPLIT(w.cell, '/'),
        lambda part: LIST_CONTAINS(STRING_SPLIT(p.coarse_dims, ','), SPLIT_PART(part, '=', 1))
      ),
      '/'
    ) AS coarse_cell
  FROM writes AS w
  JOIN pairs AS p ON p.namespace = w.namespace AND p.name = w.name AND p.dims = w.dims
), ranked AS (
  SELECT
    p.run_id, p.namespace, p.name, p.cell, r.valid_from AS covered_at, r.run_id AS covered_by,
    ROW_NUMBER() OVER (
      PARTITION BY p.run_id, p.namespace, p.name, p.cell ORDER BY r.valid_from, r.run_id
    ) AS place
  FROM projected AS p
  JOIN writes AS r
    ON r.namespace = p.namespace AND r.name = p.name AND r.dims = p.coarse_dims
    AND r.cell = p.coarse_cell AND r.is_replacing
    AND (r.valid_from > p.valid_from OR (r.valid_from = p.valid_from AND r.run_id > p.run_id))
)
SELECT run_id, namespace, name, cell, covered_at, covered_by
FROM ranked
WHERE place = 1
