BEGIN;

/* PUT /api/v1/events/{id}/invitations/me */ SELECT title, events.status = 'cancelled' AS is_cancelled, events.archived_at IS NOT NULL AS is_archived,
events.live_until <= clock_timestamp() + interval '24 hours' AS is_over, coalesce(events.answer_by < clock_timestamp(), false) AS is_past_answers, capacity, max_plus_ones, going_count, waitlisted_count
FROM events WHERE id = $1
FOR NO KEY UPDATE;

/* PUT /api/v1/events/{id}/invitations/me */ SELECT status, plus_ones FROM invitations WHERE event_id = $1 AND user_id = $2 FOR NO KEY UPDATE;

/* PUT /api/v1/events/{id}/invitations/me */ SELECT u.id, u.username, u.display_name, u.picture_url, ARRAY(SELECT user_id FROM event_hosts WHERE event_id = $1) AS hosts FROM users AS u WHERE u.id = $2;

/* PUT /api/v1/events/{id}/invitations/me */ UPDATE invitations SET status = $1, plus_ones = $2, answered_at = clock_timestamp() WHERE event_id = $3 AND user_id = $4;

/* PUT /api/v1/events/{id}/invitations/me */ UPDATE events SET plus_ones_count = plus_ones_count + $1, invited_count = invited_count - $2, going_count = going_count + $3 WHERE id = $4;

/* PUT /api/v1/events/{id}/invitations/me */ SELECT event.*, ARRAY(
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

/* PUT /api/v1/events/{id}/invitations/me */ INSERT INTO notification_queue (type, subject_id, person_id, recipient_ids, payload)
VALUES (
  $1, $2, $3, $4,
  $5
);

/* PUT /api/v1/events/{id}/invitations/me */ INSERT INTO user_stamps AS s (user_id, events, invitations)
SELECT user_id, CASE WHEN bit_or(bits) & 16 > 0 THEN now() ELSE '-infinity' END, CASE WHEN bit_or(bits) & 32 > 0 THEN now() ELSE '-infinity' END
FROM (
  SELECT user_id, $1 FROM (SELECT user_id FROM event_hosts WHERE event_id = ANY($2)) AS queried (user_id)
UNION ALL SELECT user_id, $3 FROM (SELECT i.user_id
FROM events AS e
JOIN invitations AS i ON i.event_id = e.id
WHERE e.id = ANY($4) AND (invited_count + going_count + maybe_count + declined_count + waitlisted_count + pending_count - plus_ones_count) <= $5) AS queried (user_id)
UNION ALL SELECT * FROM unnest($6, $7)
) AS touched (user_id, bits)
WHERE user_id IS NOT NULL
GROUP BY user_id
ORDER BY user_id
ON CONFLICT (user_id) DO UPDATE SET
  events = CASE WHEN excluded.events = '-infinity' THEN s.events ELSE greatest(clock_timestamp(), s.events + interval '1 microsecond' + CASE WHEN s.events < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END) END,
invitations = CASE WHEN excluded.invitations = '-infinity' THEN s.invitations ELSE greatest(clock_timestamp(), s.invitations + interval '1 microsecond' + CASE WHEN s.invitations < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END) END;

COMMIT;
