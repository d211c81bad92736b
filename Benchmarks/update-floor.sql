-- For pgbench: the rows that an edit of an event writes, and nothing else. No order of locks, no answer, no server.
\set n random(1, 1000)
SELECT id AS event FROM benchmark_events WHERE n = :n \gset
\startpipeline
BEGIN;
UPDATE events SET title = 'title ' || random(), version = version + 1 WHERE id = :event::uuid;
UPDATE collection_stamps AS s SET stamp = clock_timestamp() FROM invitations AS i
WHERE i.event_id = :event::uuid AND s.user_id = i.user_id
  AND s.collection IN ('events', 'invitations', 'notifications');
INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, payload)
SELECT user_id, clock_timestamp(), gen_random_uuid(), 'event-updated', :event::uuid,
  '{"type":"event-updated","message":"has changed: the title.","changes":["title"]}'
FROM invitations WHERE event_id = :event::uuid AND status <> 'declined';
INSERT INTO notification_queue (notification_id, type, recipient_id, subject_id, payload)
SELECT gen_random_uuid(), 'event-updated', user_id, :event::uuid,
  '{"type":"event-updated","message":"has changed: the title.","changes":["title"]}'
FROM invitations WHERE event_id = :event::uuid AND status <> 'declined';
COMMIT;
\endpipeline
