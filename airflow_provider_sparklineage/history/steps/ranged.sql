-- From when on a range that was written makes a write to a cell in it uncertain. Texts of different
-- lengths may be numbers, whose order is another one: such a cell may be in it.
SELECT w.run_id, w.namespace, w.name, w.cell, MIN(r.valid_from) AS disturbed_at
FROM writes AS w
JOIN writes AS r
  ON r.namespace = w.namespace AND r.name = w.name AND r.extent = 'range' AND r.is_disturbing
  AND (r.valid_from > w.valid_from OR (r.valid_from = w.valid_from AND r.run_id > w.run_id))
WHERE
  w.cell IS NOT NULL
  AND (
    r.first_partition IS NULL OR r.last_partition IS NULL
    OR LENGTH(w.partition) <> LENGTH(r.first_partition)
    OR LENGTH(w.partition) <> LENGTH(r.last_partition)
    OR w.partition BETWEEN r.first_partition AND r.last_partition
  )
GROUP BY w.run_id, w.namespace, w.name, w.cell
