WITH leased AS MATERIALIZED (SELECT q.id FROM unnest($1, $2) AS mine (id, lease)
JOIN deliveries AS q ON q.id = mine.id AND q.lease = mine.lease ORDER BY q.id FOR UPDATE OF q) SELECT count(*) FROM leased;

WITH leased AS MATERIALIZED (SELECT q.id FROM unnest($1, $2) AS mine (id, lease)
JOIN deliveries AS q ON q.id = mine.id AND q.lease = mine.lease ORDER BY q.id FOR UPDATE OF q) DELETE FROM deliveries AS q USING leased WHERE q.id = leased.id;

UPDATE deliveries AS q
SET attempts = CASE WHEN r.is_attempt THEN least(q.attempts, 1000000) + 1 ELSE q.attempts END,
  deaths = CASE WHEN r.is_attempt THEN 0 ELSE q.deaths END,
  due_at = CASE WHEN r.delay IS NULL THEN q.due_at ELSE now() + make_interval(secs => r.delay) END,
  last_error = coalesce(r.error, q.last_error),
  died_at = CASE WHEN r.is_dead THEN now() END,
  lease = NULL, leased_until = NULL
FROM unnest(
  $1, $2, $3,
  $4, $5, $6
) AS r (id, lease, is_attempt, delay, error, is_dead)
WHERE q.id = r.id AND q.lease = r.lease;

WITH later AS MATERIALIZED (
  SELECT b.id, q.due_at
  FROM deliveries AS q
  CROSS JOIN LATERAL (
    SELECT b.id FROM deliveries AS b
    WHERE (b.device_id, b.subject_id, b.id) > (q.device_id, q.subject_id, q.id) AND (b.device_id, b.subject_id) <= (q.device_id, q.subject_id) AND b.died_at IS NULL AND b.lease IS NULL AND b.due_at < q.due_at
    ORDER BY b.device_id, b.subject_id, b.id
    LIMIT $1
    FOR UPDATE OF b SKIP LOCKED
  ) AS b
  WHERE q.id = ANY($2) AND q.lease IS NULL
  LIMIT $3
)
UPDATE deliveries AS q SET due_at = later.due_at FROM later WHERE q.id = later.id;
