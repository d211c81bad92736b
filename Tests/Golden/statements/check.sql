SELECT q.id,
  d.id IS NOT NULL AND s.id IS NOT NULL
    AND NOT EXISTS (SELECT FROM muted_notifications AS m WHERE m.user_id = q.recipient_id AND m.type = q.type)
    AND NOT EXISTS (SELECT FROM hidden AS h WHERE h.user_id = q.recipient_id AND h.hidden_id = q.person_id)
    AND NOT (
      q.type = $1
      AND q.created_at < now() - make_interval(secs => $2)
    )
    AND (
      q.guest_id IS NULL OR EXISTS (SELECT FROM visitors AS v WHERE v.id = q.guest_id)
      OR EXISTS (SELECT FROM users AS u WHERE u.id = q.guest_id)
    )
    AND NOT (q.type = $3 AND EXISTS (
  SELECT FROM deliveries AS newer
  WHERE newer.device_id = q.device_id AND newer.subject_id = q.subject_id AND (newer.device_id, newer.subject_id, newer.id) > (q.device_id, q.subject_id, q.id) AND newer.died_at IS NULL
)),
  d.id, d.platform, d.token, d.environment, d.topic, d.localizes, d.sealed_secret,
  CASE WHEN d.previous_secret_until > now() THEN d.sealed_previous_secret END, d.registered_at,
  CASE WHEN d.platform = 'ios' THEN (
    SELECT count(*)
    FROM (
      SELECT FROM user_stamps AS inbox
      JOIN notifications AS n ON n.recipient_id = inbox.user_id AND n.filed_at >= inbox.inbox_floor
      WHERE inbox.user_id = q.recipient_id AND n.read_at IS NULL AND NOT EXISTS (
        SELECT FROM hidden AS h WHERE h.user_id = n.recipient_id AND h.hidden_id = n.person_id
      )
      LIMIT $4
    ) AS unread
  ) END,
  CASE WHEN q.type = $5 THEN
  extract(epoch FROM d.badges_sent_at[cardinality(d.badges_sent_at) - $6]
    + interval '1 hour' - now())::float8
END, coalesce(q.type <> $7 AND d.platform IN ('ios', 'android')
  AND coalesce(d.woken_at[cardinality(d.woken_at)] <= now() - make_interval(secs => $8), true)
  AND coalesce(d.woken_at[cardinality(d.woken_at) - $9] <= now() - interval '1 hour', true), false)
FROM unnest($10, $11) AS mine (id, lease)
JOIN deliveries AS q ON q.id = mine.id AND q.lease = mine.lease
LEFT JOIN devices AS d ON d.id = q.device_id AND d.user_id = q.recipient_id
LEFT JOIN sessions AS s ON s.id = d.session_id AND num_nonnulls(s.ended_at) = 0
  AND s.epoch >= (SELECT number FROM session_epoch WHERE is_only);
