-- The edges of the event that says what the run wrote.
WITH found AS (
  SELECT
    f.event_id, c.out_namespace, c.out_name, c.out_column, c.in_namespace, c.in_name, c.in_column,
    c.type, c.subtype, c.masking, c.description
  FROM facts AS f, UNNEST(f.columns) AS t(c)
)
SELECT
  w.run_id, r.ended, f.out_namespace, f.out_name, f.out_column, f.in_namespace, f.in_name,
  f.in_column, f.type, f.subtype, f.masking, f.description
FROM found AS f
JOIN winners AS w ON w.event_id = f.event_id AND w.side = 'write'
JOIN runs AS r ON r.run_id = w.run_id
