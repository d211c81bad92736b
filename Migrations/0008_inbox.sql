-- The inbox, the devices that are told, and what could not be delivered.
-- breaking
-- (A release before writes changes of which no inbox hears.)

CREATE TABLE notifications (
  -- No foreign key: it would look up a row for each of thousands of guests. Whoever files one holds the recipient's stamp,
  -- and whoever deletes an account holds it, too, before they delete what is here.
  recipient_id uuid NOT NULL,
  -- Its place in the recipient's inbox, and its number in the stream: a moment under the lock of the inbox's stamp,
  -- hence unique, and rising in the order of commits, after a restored backup, too.
  filed_at timestamptz NOT NULL,
  -- The queue row's.
  id uuid NOT NULL,
  type text NOT NULL,
  subject_id uuid NOT NULL,
  payload jsonb NOT NULL,
  -- Whom it names: who blocks them does not see it, and who deletes their account takes it along.
  actor_id uuid GENERATED ALWAYS AS ((payload->>'userId')::uuid) STORED,
  read_at timestamptz,
  PRIMARY KEY (recipient_id, filed_at)
);
CREATE INDEX notifications_by_actor ON notifications (actor_id) WHERE actor_id IS NOT NULL;
-- They come in the order of their time, and go in it.
CREATE INDEX notifications_by_age ON notifications USING brin (filed_at) WITH (pages_per_range = 16);

-- What somebody does not want to be told on their devices: a row for each type that is off.
CREATE TABLE muted_notifications (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  type text NOT NULL,
  PRIMARY KEY (user_id, type)
);

CREATE TABLE devices (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- Who logs out there is told nothing there any more.
  session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
  platform text NOT NULL CONSTRAINT device_platform CHECK (platform IN ('ios', 'android', 'webhook', 'log')),
  -- What the provider knows it by; a webhook's address.
  token text NOT NULL CONSTRAINT device_token_length CHECK (octet_length(token) BETWEEN 1 AND 1024),
  -- Of Apple's, for `ios`.
  environment text CONSTRAINT device_environment CHECK (environment IN ('production', 'sandbox')),
  -- The app's id, for `ios`.
  topic text CONSTRAINT device_topic_length CHECK (char_length(topic) BETWEEN 1 AND 255),
  name text CONSTRAINT device_name_length CHECK (char_length(name) BETWEEN 1 AND 100),
  -- What a webhook's deliveries are signed with, sealed with a key that the database does not have; beside it the one
  -- before, for a while.
  sealed_secret bytea,
  sealed_previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Belongs to whoever registered it last.
  CONSTRAINT device_token_taken UNIQUE (platform, token),
  CONSTRAINT webhook_has_a_secret CHECK ((platform = 'webhook') = (sealed_secret IS NOT NULL))
);
CREATE INDEX devices_of_user ON devices (user_id);
CREATE INDEX devices_of_session ON devices (session_id);

ALTER TABLE notification_queue
  -- Only for this device, which alone of the recipient's could not be told; NULL: for all of them.
  ADD COLUMN device_id uuid,
  ADD COLUMN actor_id uuid GENERATED ALWAYS AS ((payload->>'userId')::uuid) STORED;
DROP INDEX notification_queue_by_person;
-- Where the subject is a person, they are also the one named.
DROP INDEX notification_queue_by_subject;
CREATE INDEX notification_queue_by_actor ON notification_queue (actor_id) WHERE actor_id IS NOT NULL;
-- Rows come and go: what is dead must go before it is in the way of each search for what is due.
-- A recipient hears of one subject in order on each device, and what is for all of them is in an order of its own: only
-- the oldest row is taken, which is one look into this index, however many there are for other devices.
DROP INDEX notification_queue_in_order;
CREATE INDEX notification_queue_in_order ON notification_queue
  (recipient_id, subject_id, (coalesce(device_id, '00000000-0000-0000-0000-000000000000'::uuid)), id);
ALTER TABLE notification_queue SET (autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);

-- What was given up, for an operator to look at and to try again. It holds up nothing that comes after it.
CREATE TABLE dead_letters (
  id bigint PRIMARY KEY,
  notification_id uuid NOT NULL,
  type text NOT NULL,
  recipient_id uuid NOT NULL,
  subject_id uuid NOT NULL,
  device_id uuid,
  payload jsonb NOT NULL,
  actor_id uuid GENERATED ALWAYS AS ((payload->>'userId')::uuid) STORED,
  created_at timestamptz NOT NULL,
  attempts integer NOT NULL,
  last_error text,
  died_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX dead_letters_of_recipient ON dead_letters (recipient_id);
CREATE INDEX dead_letters_by_actor ON dead_letters (actor_id) WHERE actor_id IS NOT NULL;
CREATE INDEX dead_letters_by_age ON dead_letters (died_at);

-- When the guests of an event are reminded of it; NULL once they are, or will not be.
ALTER TABLE events ADD COLUMN remind_at timestamptz;
CREATE INDEX events_to_remind ON events (remind_at) WHERE remind_at IS NOT NULL;
UPDATE events SET remind_at = start_time - interval '1 hour'
WHERE status = 'scheduled' AND archived_at IS NULL AND start_time > now() + interval '1 hour';

-- down
DROP INDEX events_to_remind;
ALTER TABLE events DROP COLUMN remind_at;
DROP TABLE dead_letters;
DROP INDEX notification_queue_by_actor;
ALTER TABLE notification_queue RESET (autovacuum_vacuum_cost_delay, autovacuum_analyze_scale_factor);
-- What one device still waits for would be for all of them.
DELETE FROM notification_queue WHERE device_id IS NOT NULL;
DROP INDEX notification_queue_in_order;
ALTER TABLE notification_queue DROP COLUMN actor_id, DROP COLUMN device_id;
CREATE INDEX notification_queue_in_order ON notification_queue (recipient_id, subject_id, id);
CREATE INDEX notification_queue_by_subject ON notification_queue (subject_id);
CREATE INDEX notification_queue_by_person ON notification_queue ((payload->>'userId'))
  WHERE payload->>'userId' IS NOT NULL;
DROP TABLE devices;
DROP TABLE muted_notifications;
DROP TABLE notifications;
