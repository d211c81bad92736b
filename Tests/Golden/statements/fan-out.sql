--! The end of the window of waiting notices, if the step reads a window.
WITH window_end AS MATERIALIZED (SELECT max(id) AS id, count(*) >= 1000 AS is_full
FROM (
  SELECT id FROM notification_queue WHERE id > $1 AND died_at IS NULL ORDER BY id LIMIT $2
) AS waiting),
--! Locks the oldest notice of each subject in the scope. No other step has any of them.
heads AS MATERIALIZED (
  SELECT q.id, q.notice_id, q.type, q.subject_id, q.person_id, q.recipient_ids, q.payload, q.created_at, q.trace
  FROM notification_queue AS q
  WHERE q.id > $3 AND q.id <= (SELECT id FROM window_end) AND q.died_at IS NULL AND NOT EXISTS (
  SELECT FROM notification_queue AS older
  WHERE older.subject_id = q.subject_id AND (older.subject_id, older.id) < (q.subject_id, q.id) AND older.died_at IS NULL
  OFFSET 0
)
  ORDER BY q.id
  LIMIT $4
  FOR UPDATE OF q SKIP LOCKED
),
--! Locks notices directly behind them, if there are fewer subjects than a step can take.
following AS MATERIALIZED (
  SELECT heads.id AS head, next.nth, q.id, q.notice_id, q.type, q.subject_id, q.person_id, q.recipient_ids, q.payload,
    q.created_at, q.trace
  FROM heads
  CROSS JOIN LATERAL (
    SELECT id, row_number() OVER (ORDER BY id) AS nth
    FROM (
      SELECT b.id FROM notification_queue AS b
      WHERE (b.subject_id, b.id) > (heads.subject_id, heads.id) AND (b.subject_id) <= (heads.subject_id) AND b.died_at IS NULL
      ORDER BY b.subject_id, b.id
      LIMIT (SELECT $5 / nullif(count(*), 0) FROM heads)
    ) AS behind
  ) AS next
  JOIN notification_queue AS q ON q.id = next.id
  WHERE cardinality(heads.recipient_ids) < $6
  FOR UPDATE OF q SKIP LOCKED
),
--! Both, without the notices behind one that could not be locked: no notice overtakes another.
claimed AS (
  SELECT id AS head, id, notice_id, type, subject_id, person_id, recipient_ids, payload, created_at, trace FROM heads
  UNION ALL
  SELECT head, id, notice_id, type, subject_id, person_id, recipient_ids, payload, created_at, trace
  FROM (SELECT *, row_number() OVER (PARTITION BY head ORDER BY id) AS locked FROM following) AS each
  WHERE nth = locked
),
--! How many recipients of the subject are in front of each notice.
sized AS (
  SELECT *, (sum(cardinality(recipient_ids)) OVER run)::integer - cardinality(recipient_ids) AS before
  FROM claimed
  WINDOW run AS (PARTITION BY head ORDER BY id)
),
--! How many recipients of each subject this step serves. Small subjects come first, and none gets all.
shares AS (
  SELECT head, least(wanted, $7 - (sum(wanted) OVER (ORDER BY wanted, head))::integer + wanted) AS share
  FROM (
    SELECT head, least(
      (sum(cardinality(recipient_ids)))::integer,
      CASE WHEN (SELECT count(*) FROM heads) > 1 THEN $8 ELSE $9 END) AS wanted
    FROM claimed
    GROUP BY head
  ) AS each
),
--! The notices that this step serves, and how many recipients of each.
parts AS MATERIALIZED (
  SELECT sized.*, least(cardinality(sized.recipient_ids), shares.share - sized.before) AS size
  FROM sized
  JOIN shares ON shares.head = sized.head
  WHERE sized.before < shares.share
),
--! One row for each recipient with an account who can see the user whom the notice names.
addressed AS MATERIALIZED (
  SELECT part.id AS place, part.type, part.subject_id, part.person_id, part.payload, part.created_at, part.trace,
    recipient.id AS recipient_id, notification_id(part.notice_id, recipient.id) AS id,
    row_number() OVER (PARTITION BY recipient.id ORDER BY part.id) AS nth,
    count(*) OVER (PARTITION BY recipient.id) AS notices
  FROM parts AS part
  CROSS JOIN LATERAL unnest(part.recipient_ids[1:part.size]) AS recipient (id)
  WHERE EXISTS (SELECT FROM user_stamps AS s WHERE s.user_id = recipient.id OFFSET 0)
    AND NOT (part.type = ANY($10) AND EXISTS (
      SELECT FROM parts AS later
      WHERE later.type = part.type AND later.subject_id = part.subject_id AND coalesce(later.person_id::text, later.payload->>'guestId') = coalesce(part.person_id::text, part.payload->>'guestId')
        AND later.id > part.id AND recipient.id = ANY(later.recipient_ids[1:later.size])
    ))
    AND NOT (part.type = ANY($11) AND part.person_id IS NULL AND EXISTS (
      SELECT FROM parts AS later
      WHERE later.type = ANY($12) AND later.subject_id = part.subject_id AND later.id > part.id
        AND later.payload->'guests' @> jsonb_build_array(jsonb_build_object('guestId', part.payload->'guestId')) AND recipient.id = ANY(later.recipient_ids[1:later.size])
    ))
    AND NOT EXISTS (
      SELECT FROM hidden WHERE hidden.user_id = recipient.id AND hidden.hidden_id = part.person_id OFFSET 0
    )
),
--! Moves each recipient's stamp once, in the order of ids, by as many microseconds as there are notices, and above the
--! inbox's floor.
stamped AS (
  INSERT INTO user_stamps AS s (user_id, notifications)
  SELECT recipient_id, timestamptz 'epoch' + max(notices) * interval '1 microsecond'
  FROM addressed
  GROUP BY recipient_id
  ORDER BY recipient_id
  ON CONFLICT (user_id) DO UPDATE SET
    notifications = greatest(
      greatest(clock_timestamp(), s.notifications + (excluded.notifications - timestamptz 'epoch') + CASE WHEN s.notifications < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END),
      s.inbox_floor + (excluded.notifications - timestamptz 'epoch')
    )
  RETURNING s.user_id, s.notifications AS stamp
),
--! Files an inbox item for each, at a time of its own up to the stamp.
filed AS (
  INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, person_id, payload, created_at)
  SELECT a.recipient_id, stamped.stamp - (a.notices - a.nth) * interval '1 microsecond', a.id, a.type, a.subject_id,
    a.person_id, a.payload, a.created_at
  FROM addressed AS a
  JOIN stamped ON stamped.user_id = a.recipient_id
),
--! Removes a guest's earlier unread answer or request for approval.
superseded AS (
  DELETE FROM notifications AS n
  USING addressed
  JOIN stamped ON stamped.user_id = addressed.recipient_id
  WHERE addressed.type = ANY($13) AND n.person_id = addressed.person_id
    AND n.recipient_id = addressed.recipient_id AND n.subject_id = addressed.subject_id AND n.type = addressed.type
    AND n.read_at IS NULL
),
--! The same for a visitor, who has no account.
superseded_of_visitors AS (
  DELETE FROM notifications AS n
  USING addressed
  JOIN stamped ON stamped.user_id = addressed.recipient_id
  WHERE addressed.type = ANY($14) AND addressed.person_id IS NULL
    AND n.recipient_id = addressed.recipient_id AND n.subject_id = addressed.subject_id AND n.type = addressed.type
    AND n.payload->>'guestId' = addressed.payload->>'guestId' AND n.read_at IS NULL
),
--! Removes the unread items about the visitors whom a notice about several names.
superseded_by_several AS (
  DELETE FROM notifications AS n
  USING addressed
  JOIN stamped ON stamped.user_id = addressed.recipient_id
  WHERE addressed.type = ANY($15) AND addressed.payload ? 'guests' AND n.type = ANY($16)
    AND n.recipient_id = addressed.recipient_id AND n.subject_id = addressed.subject_id AND n.person_id IS NULL
    AND addressed.payload->'guests' @> jsonb_build_array(jsonb_build_object('guestId', n.payload->'guestId')) AND n.read_at IS NULL
),
--! One row for each device whose session is open and whose user has not muted the type.
pushes AS MATERIALIZED (
  SELECT addressed.*, device.id AS device_id, CASE addressed.type
  WHEN $17 THEN addressed.type
  WHEN $18 THEN addressed.type || addressed.person_id
  WHEN $19 THEN addressed.type || coalesce(addressed.person_id::text, addressed.payload->>'guestId')
  WHEN $20 THEN addressed.type || coalesce(addressed.person_id::text, addressed.payload->>'guestId')
END AS merge_key
  FROM addressed
  CROSS JOIN LATERAL (
    SELECT d.id
    FROM devices AS d
    JOIN sessions ON sessions.id = d.session_id AND num_nonnulls(sessions.ended_at) = 0
  AND sessions.epoch >= (SELECT number FROM session_epoch WHERE is_only)
    WHERE d.user_id = addressed.recipient_id
    OFFSET 0
  ) AS device
  WHERE NOT EXISTS (
    SELECT FROM muted_notifications AS m
    WHERE m.user_id = addressed.recipient_id AND m.type = addressed.type
    OFFSET 0
  )
  AND addressed.payload->>'cause' IS DISTINCT FROM $21
),
--! Consecutive pushes with the same key become one.
merged AS MATERIALIZED (
  SELECT device_id, subject_id, run, max(place) AS place, max(merge_key) AS merge_key,
    (array_agg(id ORDER BY place DESC))[1] AS id, (array_agg(recipient_id))[1] AS recipient_id, max(type) AS type,
    (array_agg(person_id))[1] AS person_id, merged_payload(payload ORDER BY place) AS payload,
    max(created_at) AS created_at, (array_agg(trace ORDER BY place DESC))[1] AS trace
  FROM (
    SELECT *, count(*) FILTER (WHERE merge_key IS DISTINCT FROM previous OR merge_key IS NULL) OVER chain AS run
    FROM (SELECT *, lag(merge_key) OVER chain AS previous FROM pushes WINDOW chain AS (
      PARTITION BY device_id, subject_id ORDER BY place
    )) AS each
    WINDOW chain AS (PARTITION BY device_id, subject_id ORDER BY place)
  ) AS each
  GROUP BY device_id, subject_id, run
),
--! The last waiting delivery of each device and subject, and whether no more may wait.
newest AS MATERIALIZED (
  SELECT chain.device_id, chain.subject_id, last.id, last.due_at, EXISTS (
      SELECT FROM deliveries AS d
      WHERE (d.device_id, d.subject_id) >= (chain.device_id, chain.subject_id) AND (d.device_id, d.subject_id) <= (chain.device_id, chain.subject_id) AND d.died_at IS NULL
      ORDER BY d.device_id, d.subject_id, d.id
      OFFSET $22
    ) AS is_full
  FROM (SELECT DISTINCT device_id, subject_id FROM merged) AS chain
  CROSS JOIN LATERAL (
    SELECT d.id, d.due_at FROM deliveries AS d
    WHERE (d.device_id, d.subject_id) >= (chain.device_id, chain.subject_id) AND (d.device_id, d.subject_id) <= (chain.device_id, chain.subject_id) AND d.died_at IS NULL
    ORDER BY d.device_id DESC, d.subject_id DESC, d.id DESC
    LIMIT 1
  ) AS last
),
--! Locks the last delivery if the push can become part of it: no worker has ever claimed it.
joined AS MATERIALIZED (
  SELECT d.id, merged.device_id, merged.subject_id, merged.id AS notification_id, merged.created_at, merged.trace,
    merged_payload(d.payload, merged.payload) AS payload
  FROM newest
  JOIN merged ON merged.device_id = newest.device_id AND merged.subject_id = newest.subject_id AND merged.run = 1
  JOIN deliveries AS d ON d.id = newest.id
  WHERE d.worker_id IS NULL AND d.attempts = 0 AND d.died_at IS NULL AND CASE d.type
  WHEN $23 THEN d.type
  WHEN $24 THEN d.type || d.person_id
  WHEN $25 THEN d.type || coalesce(d.person_id::text, d.payload->>'guestId')
  WHEN $26 THEN d.type || coalesce(d.person_id::text, d.payload->>'guestId')
END = merged.merge_key
  FOR UPDATE OF d SKIP LOCKED
),
--! Writes the merged notification into that delivery.
joining AS (
  UPDATE deliveries AS d
  SET notification_id = joined.notification_id, payload = joined.payload, created_at = joined.created_at,
    trace = joined.trace
  FROM joined
  WHERE d.id = joined.id
),
--! Inserts all others, due no earlier than the deliveries in front of them.
delivered AS (
  INSERT INTO deliveries (
    notification_id, recipient_id, device_id, type, subject_id, person_id, payload, created_at, due_at, trace
  )
  SELECT merged.id, merged.recipient_id, merged.device_id, merged.type, merged.subject_id, merged.person_id,
    merged.payload, merged.created_at, greatest(now(), newest.due_at), merged.trace
  FROM merged
  LEFT JOIN newest ON newest.device_id = merged.device_id AND newest.subject_id = merged.subject_id
  LEFT JOIN joined ON joined.device_id = merged.device_id AND joined.subject_id = merged.subject_id AND merged.run = 1
  WHERE joined.id IS NULL AND newest.is_full IS NOT TRUE
  ORDER BY merged.place, merged.device_id
),
--! Removes the recipients served from the notices that have more.
sliced AS (
  UPDATE notification_queue AS q SET recipient_ids = part.recipient_ids[part.size + 1:]
  FROM parts AS part
  WHERE q.id = part.id AND part.size < cardinality(part.recipient_ids)
),
--! Deletes the notices that have no more.
consumed AS (
  DELETE FROM notification_queue AS q
  USING parts AS part
  WHERE q.id = part.id AND part.size = cardinality(part.recipient_ids)
)
SELECT count(*), coalesce(
    count(*) >= 100 OR sum(size) >= 250
      OR bool_or(size < cardinality(recipient_ids)),
    false)
  OR count(*) < (SELECT count(*) FROM claimed)
  OR EXISTS (SELECT FROM following WHERE nth >= (SELECT $27 / nullif(count(*), 0) FROM heads)),
  (SELECT id FROM window_end WHERE is_full)
FROM parts;
