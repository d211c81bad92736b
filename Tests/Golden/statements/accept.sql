/* POST /api/v1/friend-requests/{id}/accept */ SELECT sender_id FROM friend_requests WHERE id = $1 AND receiver_id = $2;

BEGIN;

/* POST /api/v1/friend-requests/{id}/accept */ SELECT pg_advisory_xact_lock_shared($1, key) FROM unnest($2) AS key;

/* POST /api/v1/friend-requests/{id}/accept */ SELECT id FROM users WHERE id = ANY($1) ORDER BY id FOR SHARE;

/* POST /api/v1/friend-requests/{id}/accept */ SELECT status FROM friend_requests
WHERE id = $1 AND receiver_id = $2 AND sender_id = $3 AND sender_id NOT IN (SELECT hidden_id FROM hidden WHERE user_id = $4)
FOR UPDATE;

/* POST /api/v1/friend-requests/{id}/accept */ UPDATE friend_requests SET status = $1, closed_at = now() WHERE id = $2 RETURNING filtered;

/* POST /api/v1/friend-requests/{id}/accept */ SELECT r.id, CASE WHEN sender.id IS NOT NULL THEN ROW(sender.id, sender.username, sender.display_name, sender.picture_url) END AS sender, CASE WHEN receiver.id IS NOT NULL THEN ROW(receiver.id, receiver.username, receiver.display_name, receiver.picture_url) END AS receiver, r.status,
r.status = 'pending' AND r.filtered AS filtered, r.created_at FROM friend_requests AS r
JOIN users AS sender ON sender.id = r.sender_id
JOIN users AS receiver ON receiver.id = r.receiver_id WHERE r.id = $1;

/* POST /api/v1/friend-requests/{id}/accept */ INSERT INTO friendships (user_a, user_b)
VALUES (least($1, $2), greatest($3, $4))
ON CONFLICT DO NOTHING;

/* POST /api/v1/friend-requests/{id}/accept */ INSERT INTO notification_queue (type, subject_id, person_id, recipient_ids, payload)
VALUES (
  $1, $2, $3, $4,
  $5
);

/* POST /api/v1/friend-requests/{id}/accept */ INSERT INTO user_stamps AS s (user_id, friends, friend_requests, sent_friend_requests)
SELECT user_id, CASE WHEN bit_or(bits) & 2 > 0 THEN now() ELSE '-infinity' END, CASE WHEN bit_or(bits) & 4 > 0 THEN now() ELSE '-infinity' END, CASE WHEN bit_or(bits) & 8 > 0 THEN now() ELSE '-infinity' END
FROM (
  SELECT * FROM unnest($1, $2)
) AS touched (user_id, bits)
WHERE user_id IS NOT NULL
GROUP BY user_id
ORDER BY user_id
ON CONFLICT (user_id) DO UPDATE SET
  friends = CASE WHEN excluded.friends = '-infinity' THEN s.friends ELSE greatest(clock_timestamp(), s.friends + interval '1 microsecond' + CASE WHEN s.friends < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END) END,
friend_requests = CASE WHEN excluded.friend_requests = '-infinity' THEN s.friend_requests ELSE greatest(clock_timestamp(), s.friend_requests + interval '1 microsecond' + CASE WHEN s.friend_requests < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END) END,
sent_friend_requests = CASE WHEN excluded.sent_friend_requests = '-infinity' THEN s.sent_friend_requests ELSE greatest(clock_timestamp(), s.sent_friend_requests + interval '1 microsecond' + CASE WHEN s.sent_friend_requests < clock_timestamp() THEN interval '0' ELSE random() * interval '10 milliseconds' END) END;

COMMIT;
