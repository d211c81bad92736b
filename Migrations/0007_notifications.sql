-- Notifications: the queue, the inbox, devices, and dead letters.

-- Written in the transaction of the change, delivered by the worker.
CREATE TABLE notification_queue (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  notification_id uuid NOT NULL DEFAULT uuid_v7(),
  type text NOT NULL,
  recipient_id uuid NOT NULL,
  subject_id uuid NOT NULL,
  payload jsonb NOT NULL,
  actor_id uuid GENERATED ALWAYS AS ((payload->>'userId')::uuid) STORED,
  device_id uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  last_error text,
  leased_until timestamptz,
  lease uuid
)
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);
CREATE INDEX notification_queue_due ON notification_queue (due_at, id);
CREATE INDEX notification_queue_in_order ON notification_queue
  (recipient_id, subject_id, (coalesce(device_id, '00000000-0000-0000-0000-000000000000'::uuid)), id);
CREATE INDEX notification_queue_by_actor ON notification_queue (actor_id) WHERE actor_id IS NOT NULL;

CREATE TABLE notifications (
  recipient_id uuid NOT NULL,
  filed_at timestamptz NOT NULL,
  id uuid NOT NULL,
  type text NOT NULL,
  subject_id uuid NOT NULL,
  payload jsonb NOT NULL,
  actor_id uuid GENERATED ALWAYS AS ((payload->>'userId')::uuid) STORED,
  read_at timestamptz,
  PRIMARY KEY (recipient_id, filed_at)
);
CREATE INDEX notifications_by_actor ON notifications (actor_id) WHERE actor_id IS NOT NULL;
CREATE INDEX notifications_by_age ON notifications USING brin (filed_at) WITH (pages_per_range = 16);

-- Types that a user does not want on their devices.
CREATE TABLE muted_notifications (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  type text NOT NULL,
  PRIMARY KEY (user_id, type)
);

CREATE TABLE devices (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- Logging out removes the session's devices.
  session_id uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
  platform text NOT NULL CONSTRAINT device_platform CHECK (platform IN ('ios', 'android', 'webhook', 'log')),
  -- The provider's name for the device, or a webhook's URL.
  token text NOT NULL CONSTRAINT device_token_length CHECK (octet_length(token) BETWEEN 1 AND 1024),
  -- Apple's environment, for `ios`.
  environment text CONSTRAINT device_environment CHECK (environment IN ('production', 'sandbox')),
  -- The app's id, for `ios`.
  topic text CONSTRAINT device_topic_length CHECK (char_length(topic) BETWEEN 1 AND 255),
  name text CONSTRAINT device_name_length CHECK (char_length(name) BETWEEN 1 AND 100),
  -- Signs a webhook's deliveries, sealed with a key that the database does not have. The previous one stays for a while.
  sealed_secret bytea,
  sealed_previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- A token belongs to the last user to register it.
  CONSTRAINT device_token_taken UNIQUE (platform, token),
  CONSTRAINT webhook_has_a_secret CHECK ((platform = 'webhook') = (sealed_secret IS NOT NULL))
);
CREATE INDEX devices_of_user ON devices (user_id);
CREATE INDEX devices_of_session ON devices (session_id);

-- Deliveries that were given up, for an operator to see and retry. They block nothing behind them.
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

-- down

DROP TABLE dead_letters;
DROP TABLE devices;
DROP TABLE muted_notifications;
DROP TABLE notifications;
DROP TABLE notification_queue;
