BEGIN;

/* PATCH /api/v1/events/{id} */ SELECT creator_id, title, start_time, ROW(events.title, events.note, events.start_time, events.end_time, events.time_zone, events.location_name, events.latitude, events.longitude, events.url, events.capacity, events.answer_by, events.max_plus_ones) AS plan, ROW(start_offset, end_offset, answer_by_offset, zone_rules) AS offsets, capacity, max_plus_ones, going_count, waitlisted_count, visitor_count,
  version, events.status = 'cancelled' AS is_cancelled, events.archived_at IS NOT NULL AS is_archived,
events.live_until <= clock_timestamp() + interval '24 hours' AS is_over, coalesce(events.answer_by < clock_timestamp(), false) AS is_past_answers, (invited_count + going_count + maybe_count + declined_count + waitlisted_count + pending_count - plus_ones_count) AS total
FROM events WHERE id = $1
FOR NO KEY UPDATE;

/* PATCH /api/v1/events/{id} */ UPDATE events
SET title = $1, note = $2, start_time = $3, end_time = $4, time_zone = $5, location_name = $6, latitude = $7, longitude = $8, url = $9, capacity = $10, answer_by = $11, max_plus_ones = $12, live_until = $13, remind_at = remind_at,
  start_offset = $14, end_offset = $15, answer_by_offset = $16, zone_rules = $17, version = version + 1, updated_at = clock_timestamp()
WHERE id = $18;

/* PATCH /api/v1/events/{id} */ SELECT event.*, ARRAY(
  SELECT ROW(i.id, u.id, u.username, u.display_name, u.picture_url, coalesce(i.name, u.display_name), i.status, i.plus_ones, i.answered_at)
  FROM (
    SELECT v.id, v.user_id, v.name, v.status, v.plus_ones, v.since, v.answered_at,
      array_position(ARRAY['going', 'maybe', 'waitlisted', 'invited'], v.status) AS rank
    FROM (SELECT id, user_id, name, status, plus_ones, since, answered_at FROM event_guests
WHERE event_id = event.id AND (user_id IS NULL OR user_id NOT IN (SELECT hidden_id FROM hidden WHERE user_id = $2))
  AND (id = $2 OR event.my_status <> 'pending')
  AND (status <> 'pending' OR id = $2 OR event.my_status IN ('creator', 'host'))) AS v
    ORDER BY rank, v.since, v.id
    LIMIT 20
  ) AS i
  LEFT JOIN users AS u ON u.id = i.user_id
  ORDER BY i.rank, i.since, i.id
) AS participants
FROM (SELECT e.id, m.my_status, ROW(
  e.id, e.title, e.note, e.start_time, e.end_time, e.time_zone, e.location_name, e.latitude, e.longitude, e.url, e.capacity, e.answer_by, e.max_plus_ones, e.status, c.id, c.username, c.display_name, c.picture_url, co.co_hosts, e.version, e.invited_count,
  e.going_count, e.maybe_count, e.declined_count, e.waitlisted_count, e.pending_count, e.plus_ones_count,
  e.created_at, e.updated_at, m.my_status, m.my_plus_ones
) AS event FROM (SELECT event_id, role AS my_status, 0 AS my_plus_ones FROM event_hosts WHERE user_id = $2 AND event_id = $1
UNION ALL
SELECT event_id, status, plus_ones FROM invitations WHERE user_id = $2 AND event_id = $1) AS m
CROSS JOIN LATERAL (SELECT * FROM events WHERE id = m.event_id OFFSET 0) AS e
LEFT JOIN users AS c ON c.id = e.creator_id AND c.id NOT IN (SELECT hidden_id FROM hidden WHERE user_id = $2)
CROSS JOIN LATERAL (
  SELECT CASE WHEN e.may_have_co_hosts THEN ARRAY(
    SELECT ROW(p.id, p.username, p.display_name, p.picture_url)
    FROM event_co_hosts AS h
    JOIN users AS p ON p.id = h.user_id
    WHERE h.event_id = e.id AND h.user_id NOT IN (SELECT hidden_id FROM hidden WHERE user_id = $2)
    ORDER BY h.added_at, h.user_id
  ) ELSE ARRAY[]::record[] END AS co_hosts
) AS co) AS event
ORDER BY event.id;

/* PATCH /api/v1/events/{id} */ INSERT INTO notification_queue (type, subject_id, person_id, recipient_ids, payload)
SELECT $1, $2, $3, recipients.ids, $4
FROM (
  SELECT array_agg(DISTINCT user_id) AS ids
  FROM (SELECT user_id FROM event_hosts WHERE event_id = $5 UNION ALL SELECT user_id FROM invitations WHERE event_id = $6 AND status <> 'declined') AS each (user_id)
  WHERE user_id IS NOT NULL AND user_id IS DISTINCT FROM $7
) AS recipients
WHERE recipients.ids IS NOT NULL;

/* PATCH /api/v1/events/{id} */ INSERT INTO user_stamps AS s (user_id, events, invitations)
SELECT user_id, CASE WHEN bit_or(bits) & 16 > 0 THEN now() ELSE '-infinity' END, CASE WHEN bit_or(bits) & 32 > 0 THEN now() ELSE '-infinity' END
FROM (
  SELECT user_id, $1 FROM (SELECT user_id FROM event_hosts WHERE event_id = $2) AS queried (user_id)
UNION ALL SELECT user_id, $3 FROM (SELECT user_id FROM invitations WHERE event_id = $4) AS queried (user_id)
) AS touched (user_id, bits)
WHERE user_id IS NOT NULL
GROUP BY user_id
ORDER BY user_id
ON CONFLICT (user_id) DO UPDATE SET
  events = CASE WHEN excluded.events = '-infinity' THEN s.events ELSE greatest(clock_timestamp(), s.events + interval '1 microsecond' + CASE WHEN s.events < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END) END,
invitations = CASE WHEN excluded.invitations = '-infinity' THEN s.invitations ELSE greatest(clock_timestamp(), s.invitations + interval '1 microsecond' + CASE WHEN s.invitations < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END) END;

COMMIT;
