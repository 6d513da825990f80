-- One row a run. What an event says of its run is taken from the last that ends the run, else from
-- the last; what that one leaves out, from any other.
WITH ranked AS (
  SELECT
        *,
    ROW_NUMBER() OVER (
      PARTITION BY run_id
      ORDER BY
        CASE WHEN event_type IN ('COMPLETE', 'FAIL', 'ABORT') THEN 0 ELSE 1 END,
        event_time DESC NULLS LAST,
        event_id DESC
    ) AS place
  FROM (
    SELECT
      event_id, run_id, namespace, job, dag_id, task_id, dag_run_id, map_index, try_number,
      logical_date, data_interval_start, data_interval_end, partition_key, event_type, event_time,
      started, producer, parent_run_id, root_run_id, is_ours, check_status, degradations, source
    FROM facts
  ) AS events
), grouped AS (
  SELECT
    run_id,
    COALESCE(MAX(CASE WHEN place = 1 THEN namespace END), MAX(namespace)) AS namespace,
    COALESCE(MAX(CASE WHEN place = 1 THEN job END), MAX(job)) AS job,
    COALESCE(MAX(CASE WHEN place = 1 THEN dag_id END), MAX(dag_id)) AS dag_id,
    COALESCE(MAX(CASE WHEN place = 1 THEN task_id END), MAX(task_id)) AS task_id,
    COALESCE(MAX(CASE WHEN place = 1 THEN dag_run_id END), MAX(dag_run_id)) AS dag_run_id,
    COALESCE(MAX(CASE WHEN place = 1 THEN map_index END), MAX(map_index)) AS map_index,
    COALESCE(MAX(CASE WHEN place = 1 THEN try_number END), MAX(try_number)) AS try_number,
    COALESCE(MAX(CASE WHEN place = 1 THEN logical_date END), MAX(logical_date)) AS logical_date,
    COALESCE(
      MAX(CASE WHEN place = 1 THEN data_interval_start END), MAX(data_interval_start)
    ) AS data_interval_start,
    COALESCE(
      MAX(CASE WHEN place = 1 THEN data_interval_end END), MAX(data_interval_end)
    ) AS data_interval_end,
    COALESCE(MAX(CASE WHEN place = 1 THEN partition_key END), MAX(partition_key)) AS partition_key,
    MAX(
      CASE WHEN place = 1 AND event_type IN ('COMPLETE', 'FAIL', 'ABORT') THEN event_type END
    ) AS ending,
    MIN(CASE WHEN event_type = 'START' THEN event_time END) AS start_event,
    MIN(started) AS task_start,
    MAX(
      CASE WHEN place = 1 AND event_type IN ('COMPLETE', 'FAIL', 'ABORT') THEN event_time END
    ) AS ended,
    MIN(event_time) AS first_event,
    COALESCE(MAX(CASE WHEN place = 1 THEN producer END), MAX(producer)) AS producer,
    COALESCE(MAX(CASE WHEN place = 1 THEN parent_run_id END), MAX(parent_run_id)) AS parent_run_id,
    COALESCE(MAX(CASE WHEN place = 1 THEN root_run_id END), MAX(root_run_id)) AS root_run_id,
    COALESCE(MAX(CASE WHEN place = 1 THEN is_ours END), FALSE) AS is_ours,
    COALESCE(MAX(CASE WHEN place = 1 THEN check_status END), MAX(check_status)) AS check_status,
    COALESCE(MAX(CASE WHEN place = 1 THEN degradations END), MAX(degradations)) AS degradations,
    COALESCE(MAX(CASE WHEN place = 1 THEN source END), MAX(source)) AS source
  FROM ranked
  GROUP BY run_id
), timed AS (
  SELECT *, COALESCE(start_event, task_start) AS known_start
  FROM grouped
)
SELECT
  run_id, namespace, job, dag_id, task_id, dag_run_id, map_index, try_number, logical_date,
  data_interval_start, data_interval_end, partition_key,
  COALESCE(ending, 'RUNNING') AS state,
  -- A start after the end is of a clock that went backwards.
  LEAST(COALESCE(known_start, ended, first_event), ended) AS started,
  ended,
  known_start IS NOT NULL AND (ended IS NULL OR known_start <= ended) AS is_time_certain,
  producer, parent_run_id, root_run_id, is_ours, check_status, degradations, source
FROM timed
