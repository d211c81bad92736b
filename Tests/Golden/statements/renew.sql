INSERT INTO workers AS w (id) VALUES ($1)
ON CONFLICT (id) DO UPDATE
SET heartbeat_at = now(), steady_since = CASE WHEN w.heartbeat_at > now() - make_interval(secs => $2) THEN w.steady_since ELSE now() END;

WITH leased AS MATERIALIZED (SELECT q.id FROM unnest($1, $2) AS mine (id, lease)
JOIN deliveries AS q ON q.id = mine.id AND q.lease = mine.lease FOR UPDATE OF q SKIP LOCKED)
UPDATE deliveries AS q SET leased_until = now() + make_interval(secs => $3)
FROM leased
WHERE q.id = leased.id;
