-- For pgbench: the rows and the two round trips of an edit of an event, as the service makes them, without a server.
\set n random(1, 1000)
SELECT id AS event FROM benchmark_events WHERE n = :n \gset
\startpipeline
BEGIN;
SELECT title, version FROM events WHERE id = :event::uuid FOR NO KEY UPDATE;
\endpipeline
\startpipeline
UPDATE events SET title = 'title ' || random(), version = version + 1, updated_at = clock_timestamp()
WHERE id = :event::uuid;
SELECT * FROM events AS e JOIN users AS u ON u.id = e.creator_id WHERE e.id = :event::uuid;
INSERT INTO notification_queue (type, subject_id, recipient_ids, payload)
SELECT 'event-updated', :event::uuid, recipients.ids,
  '{"type":"event-updated","title":"title","changes":[{"field":"title","old":"a","new":"b"}]}'
FROM (
  SELECT array_agg(user_id) AS ids FROM invitations WHERE event_id = :event::uuid AND status <> 'declined'
) AS recipients
WHERE recipients.ids IS NOT NULL;
INSERT INTO user_stamps AS s (user_id, events, invitations)
SELECT user_id, now(), now()
FROM (
  SELECT user_id FROM invitations WHERE event_id = :event::uuid
  UNION
  SELECT creator_id FROM events WHERE id = :event::uuid
) AS touched
ORDER BY user_id
ON CONFLICT (user_id) DO UPDATE SET
  events = greatest(clock_timestamp(), s.events + interval '1 microsecond'),
  invitations = greatest(clock_timestamp(), s.invitations + interval '1 microsecond');
COMMIT;
\endpipeline
