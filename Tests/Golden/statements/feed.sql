/* GET /api/v1/events */ SELECT s.events AS stamp, NULL::bigint AS beside, item.*
FROM user_stamps AS s
LEFT JOIN LATERAL (
SELECT e.id, m.my_status, ROW(
  e.id, e.title, e.note, e.start_time, e.end_time, e.time_zone, e.location_name, e.latitude, e.longitude, e.url, e.capacity, e.answer_by, e.max_plus_ones, e.status, c.id, c.username, c.display_name, c.picture_url, co.co_hosts, e.version, e.invited_count,
  e.going_count, e.maybe_count, e.declined_count, e.waitlisted_count, e.pending_count, e.plus_ones_count,
  e.created_at, e.updated_at, m.my_status, m.my_plus_ones
) AS event, e.start_time AS cursor_time, e.id AS cursor_id
FROM (SELECT event_id, role AS my_status, 0 AS my_plus_ones FROM event_hosts WHERE user_id = $1 AND archived_start IS NULL
UNION ALL
SELECT event_id, status, plus_ones FROM invitations WHERE user_id = $1 AND archived_start IS NULL) AS m
CROSS JOIN LATERAL (SELECT * FROM events WHERE id = m.event_id OFFSET 0) AS e
LEFT JOIN users AS c ON c.id = e.creator_id AND c.id NOT IN (SELECT hidden_id FROM hidden WHERE user_id = $1)
CROSS JOIN LATERAL (
  SELECT CASE WHEN e.may_have_co_hosts THEN ARRAY(
    SELECT ROW(p.id, p.username, p.display_name, p.picture_url)
    FROM event_co_hosts AS h
    JOIN users AS p ON p.id = h.user_id
    WHERE h.event_id = e.id AND h.user_id NOT IN (SELECT hidden_id FROM hidden WHERE user_id = $1)
    ORDER BY h.added_at, h.user_id
  ) ELSE ARRAY[]::record[] END AS co_hosts
) AS co WHERE true 
ORDER BY cursor_time ASC, cursor_id ASC
LIMIT $2
) AS item ON true
WHERE s.user_id = $3
ORDER BY cursor_time ASC, cursor_id ASC;
