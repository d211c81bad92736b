WITH due AS MATERIALIZED (
  SELECT d.id, d.device_id, d.subject_id, d.leased_until IS NOT NULL AND NOT EXISTS (
  SELECT FROM workers AS w
  WHERE w.id = d.worker_id AND w.heartbeat_at > now() - make_interval(secs => $1)
) AS is_orphan
  FROM deliveries AS d
  WHERE d.died_at IS NULL AND d.due_at <= now() AND d.due_at > now() - interval '5 seconds' AND d.deaths < 2 AND (d.leased_until IS NULL
  OR d.leased_until <= now() AND (EXISTS (
  SELECT FROM workers AS w
  WHERE w.id = d.worker_id AND w.heartbeat_at > now() - make_interval(secs => $2)
) OR (SELECT EXISTS (
  SELECT FROM workers AS w
  WHERE w.id = $3 AND w.heartbeat_at > now() - make_interval(secs => $4)
    AND w.steady_since <= now() - make_interval(secs => $5)
))))
    AND NOT EXISTS (
  SELECT FROM deliveries AS older
  WHERE older.device_id = d.device_id AND older.subject_id = d.subject_id AND (older.device_id, older.subject_id, older.id) < (d.device_id, d.subject_id, d.id) AND older.died_at IS NULL
  OFFSET 0
)
  ORDER BY d.due_at, d.id
  LIMIT $6
  FOR UPDATE OF d SKIP LOCKED
),
behind AS MATERIALIZED (
  SELECT due.id AS head, due.is_orphan, next.id, next.nth
  FROM due
  CROSS JOIN LATERAL (
    SELECT n.id, row_number() OVER (ORDER BY n.id) AS nth
    FROM (
      SELECT b.id FROM deliveries AS b
      WHERE (b.device_id, b.subject_id, b.id) > (due.device_id, due.subject_id, due.id) AND (b.device_id, b.subject_id) <= (due.device_id, due.subject_id) AND b.died_at IS NULL
      ORDER BY b.device_id, b.subject_id, b.id
      LIMIT $7
    ) AS n
  ) AS next
  LIMIT $8
),
-- One key at a time. With IS NULL, the planner may read a whole partial index for each row if the table was small.
locked AS MATERIALIZED (
  SELECT behind.head, behind.is_orphan, behind.id, behind.nth
  FROM behind
  CROSS JOIN LATERAL (
    SELECT FROM deliveries AS b
    WHERE b.id = behind.id AND num_nulls(b.died_at) = 1 AND b.due_at <= now()
      AND b.deaths < 2
      AND (b.leased_until IS NULL
  OR b.leased_until <= now() AND (EXISTS (
  SELECT FROM workers AS w
  WHERE w.id = b.worker_id AND w.heartbeat_at > now() - make_interval(secs => $9)
) OR (SELECT EXISTS (
  SELECT FROM workers AS w
  WHERE w.id = $10 AND w.heartbeat_at > now() - make_interval(secs => $11)
    AND w.steady_since <= now() - make_interval(secs => $12)
))))
    FOR UPDATE OF b SKIP LOCKED
  ) AS free
),
following AS (
  SELECT head, id, is_orphan
  FROM (
    SELECT head, id, is_orphan, nth, row_number() OVER (PARTITION BY head ORDER BY id) AS got FROM locked
  ) AS each
  WHERE nth = got
),
-- MATERIALIZED: another worker may change a row between the snapshot and the lock. PostgreSQL then checks again
-- whether the row is in `mine`. If this were a UNION ALL in the statement, it would not find the row, and lease
-- those behind it without it.
mine AS MATERIALIZED (
  SELECT id AS head, id, is_orphan FROM due
  UNION ALL SELECT head, id, is_orphan FROM following
)
UPDATE deliveries AS q
SET lease = CASE WHEN NOT mine.is_orphan THEN $13 END,
  worker_id = CASE WHEN NOT mine.is_orphan THEN $14 ELSE q.worker_id END,
  leased_until = CASE WHEN NOT mine.is_orphan THEN now() + make_interval(secs => $15) END,
  deaths = CASE WHEN mine.is_orphan AND mine.id = mine.head THEN least(q.deaths, 100) + 1 ELSE q.deaths END,
  died_at = CASE
    WHEN mine.is_orphan AND mine.id = mine.head AND q.deaths >= $16 THEN now()
  END,
  last_error = CASE
    WHEN mine.is_orphan AND mine.id = mine.head THEN 'a worker died while this was in flight' ELSE q.last_error
  END
FROM mine
WHERE q.id = mine.id
RETURNING mine.head, q.id, mine.is_orphan, q.died_at IS NOT NULL, q.attempts, q.created_at, q.notification_id, q.recipient_id, q.type, q.subject_id, q.payload, q.trace;
