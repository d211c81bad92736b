-- What has happened and whom to tell: written in the transaction of the change, delivered by the worker.

CREATE TABLE notification_queue (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The same wherever the notification shows up, so that a receiver can tell a repeated delivery.
  notification_id uuid NOT NULL DEFAULT uuid_v7(),
  type text NOT NULL,
  -- No foreign keys here: each would lock and look up a row for every recipient of an event with thousands of guests.
  recipient_id uuid NOT NULL,
  -- What it is about: an event, a request, a person, a session.
  subject_id uuid NOT NULL,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  -- Failed ones; a row taken over from a worker that died does not count.
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  -- A worker's claim: until when, and the token that its acknowledgement must still find.
  leased_until timestamptz,
  lease uuid
)
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX notification_queue_due ON notification_queue (due_at, id);
-- A recipient hears of one subject in order: only the oldest row of the two is taken.
CREATE INDEX notification_queue_in_order ON notification_queue (recipient_id, subject_id, id);

-- down
DROP TABLE notification_queue;
