-- Notifications. A change writes its notices into the queue. The worker fans them out into inboxes and deliveries, and
-- sends the deliveries. Mails and Apple revocations wait in tables of their own.
--
-- The queue, inbox and deliveries have no foreign keys. A foreign key would lock a row of users or devices after the
-- stamps, where a change must not wait, and would look up a row for each of thousands of guests.

-- One row for each notice, whatever the number of its recipients. Notices about one subject are fanned out in id order.
CREATE TABLE notification_queue (
  -- CACHE 1: notices about an event are inserted under its row lock, so their ids rise as their changes commit.
  id bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
  notice_id uuid NOT NULL DEFAULT uuid_v7(),
  type text NOT NULL,
  -- An event, a session, or a user.
  subject_id uuid NOT NULL,
  -- The user whom the notice names.
  person_id uuid,
  -- Fan-out removes recipients from the front.
  recipient_ids uuid[] NOT NULL CONSTRAINT notice_has_recipients CHECK (cardinality(recipient_ids) > 0),
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- How often fan-out failed because of this row, and why.
  failures integer NOT NULL DEFAULT 0,
  last_error text,
  -- Set: a dead letter. Fan-out skips it.
  died_at timestamptz,
  -- The trace of the request that caused the notice: its id and flags. Webhooks pass it on. A change sets it for its
  -- transaction if its request has one.
  trace text DEFAULT nullif(current_setting('muster.trace', true), ''),
  -- The guest whom the notice is about, by the id in guest lists: it goes with a visitor. A proposed answer has the id of
  -- its visitor.
  guest_id uuid GENERATED ALWAYS AS (
    (CASE WHEN type = 'answer-proposed' THEN payload->>'proposalId' ELSE payload->>'guestId' END)::uuid
  ) STORED
)
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.5);
CREATE INDEX notification_queue_in_order ON notification_queue (subject_id, id);
CREATE INDEX notification_queue_by_person ON notification_queue (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX notification_queue_by_guest ON notification_queue (guest_id) WHERE guest_id IS NOT NULL;
CREATE INDEX dead_notices ON notification_queue (died_at) WHERE died_at IS NOT NULL;

-- The id of a notice in one recipient's inbox: a version 7 UUID with the notice's time, the rest derived from both ids.
-- One expression, so that PostgreSQL inlines it.
CREATE FUNCTION notification_id(notice uuid, recipient uuid) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN overlay(
  overlay(md5(notice::text || recipient::text) PLACING left(replace(notice::text, '-', ''), 13) FROM 1 FOR 13)
  PLACING 'a' FROM 17 FOR 1)::uuid;

-- Merges two payloads about one subject: the newer one, with each changed field's first old and last new value.
CREATE FUNCTION merged_payload(older jsonb, newer jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN older ? 'changes' AND newer ? 'changes' THEN
  jsonb_set(newer, '{changes}', (
    SELECT jsonb_agg(change ORDER BY place)
    FROM (
      SELECT min(place) AS place, jsonb_build_object(
        'field', change->'field',
        'old', (array_agg(change->'old' ORDER BY place))[1],
        'new', (array_agg(change->'new' ORDER BY place DESC))[1]) AS change
      FROM jsonb_array_elements((older->'changes') || (newer->'changes')) WITH ORDINALITY AS each (change, place)
      GROUP BY change->'field'
    ) AS field
  ))
  ELSE newer
END;
CREATE AGGREGATE merged_payload(jsonb) (SFUNC = merged_payload, STYPE = jsonb);

-- The inboxes, in partitions of 30 days. Old partitions are dropped, which costs nothing per row and leaves no dead rows.
-- No other table is partitioned: those grow slower, and a uniqueness that is a promise needs one index. Autovacuum has
-- its default settings: what a month leaves dead goes with its partition.
CREATE TABLE notifications (
  recipient_id uuid NOT NULL,
  -- The item's place in the inbox and its number in the stream. Taken under the lock of the recipient's stamps, so it
  -- is unique and rises in commit order, even after a restored backup.
  filed_at timestamptz NOT NULL,
  -- Derived from the notice and the recipient: the same in the inbox, the stream and every delivery.
  id uuid NOT NULL,
  type text NOT NULL,
  subject_id uuid NOT NULL,
  person_id uuid,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL,
  read_at timestamptz,
  -- See `notification_queue`.
  guest_id uuid GENERATED ALWAYS AS (
    (CASE WHEN type = 'answer-proposed' THEN payload->>'proposalId' ELSE payload->>'guestId' END)::uuid
  ) STORED,
  PRIMARY KEY (recipient_id, filed_at)
) PARTITION BY RANGE (filed_at);
CREATE INDEX notifications_by_guest ON notifications (guest_id) WHERE guest_id IS NOT NULL;
CREATE INDEX notifications_by_person ON notifications (person_id, recipient_id) WHERE person_id IS NOT NULL;
-- For marking and counting unread items.
CREATE INDEX unread_notifications ON notifications (recipient_id, filed_at) WHERE read_at IS NULL;
-- For erasing the notes and places of a deleted account's events.
CREATE INDEX notifications_of_edits ON notifications (subject_id) WHERE type = 'event-updated';
-- For removing the name of a visitor from notifications that name several.
CREATE INDEX notifications_of_several ON notifications (subject_id) WHERE payload ? 'guests';

-- Items of a time without a partition: the clock has jumped, or no worker has run for a month. Old ones are deleted.
CREATE TABLE notifications_default PARTITION OF notifications DEFAULT;
-- For deleting them. It has no order, so that no page is read by it.
CREATE INDEX notifications_default_by_age ON notifications_default USING brin (filed_at);

-- The start of a partition, from a time in it.
CREATE FUNCTION notification_period(moment timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN date_bin(notification_span(), moment, timestamptz '2000-01-01 00:00:00+00');

-- Items filed before this time are over. It is the start of a partition, 90 to 120 days ago.
CREATE FUNCTION notifications_over() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN notification_period(now() - 3 * notification_span());

-- The partitions of 30 days.
CREATE VIEW notification_partitions AS
SELECT name, start, start + notification_span() AS until
FROM (
  SELECT c.relname::text AS name,
    substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''([^'']+)''\)')::timestamptz AS start
  FROM pg_inherits AS i
  JOIN pg_class AS c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'notifications'::regclass
) AS each
WHERE start IS NOT NULL;

-- Makes the partition of a time. The next function calls it for the current 30 days and the following ones. The workers'
-- role may not create tables, so these functions have the owner's rights. They take no names from their caller, and no
-- settings that change how times are read. A lock that is not free at once is tried again by a later run, because reads
-- of inboxes wait behind one that waits.
CREATE FUNCTION make_notification_partition(moment timestamptz) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET lock_timeout = '100ms'
AS $$
DECLARE
  start timestamptz := public.notification_period(moment);
  until timestamptz := start + public.notification_span();
  -- The minute at which it starts.
  name text := 'notifications_' || to_char(start, 'YYYYMMDDHH24MI');
BEGIN
  IF to_regclass('public.' || name) IS NOT NULL THEN RETURN 0; END IF;
  LOCK TABLE ONLY public.notifications IN SHARE UPDATE EXCLUSIVE MODE;
  -- After a jump of the clock, there may be enough of another time.
  IF (SELECT count(*) FROM public.notification_partitions) >= 6 THEN RETURN 0; END IF;
  -- PostgreSQL reads it while no one else may. It is large only if no worker has run for long, or a clock was wrong, and
  -- shrinks as its items end.
  IF pg_table_size('public.notifications_default') > 256 * 1024 * 1024 THEN RETURN 0; END IF;
  LOCK TABLE public.notifications_default IN ACCESS EXCLUSIVE MODE;
  -- Its items would belong into the new partition. They and those that follow stay here until they are deleted.
  IF EXISTS (SELECT FROM public.notifications_default WHERE filed_at >= start AND filed_at < until) THEN RETURN 0; END IF;
  EXECUTE format(
    'CREATE TABLE IF NOT EXISTS public.%I PARTITION OF public.notifications FOR VALUES FROM (%L) TO (%L)',
    name, start, until);
  RETURN 1;
END
$$;
REVOKE EXECUTE ON FUNCTION make_notification_partition FROM PUBLIC;

CREATE FUNCTION make_notification_partitions() RETURNS integer LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
  SELECT public.make_notification_partition(now()) + public.make_notification_partition(now() + public.notification_span())
$$;
REVOKE EXECUTE ON FUNCTION make_notification_partitions FROM PUBLIC;

-- Drops one partition whose items are over, once no user sees them: a DROP moves no stamps. DETACH ... CONCURRENTLY
-- cannot run in a function, and needs the owner's rights.
CREATE FUNCTION drop_notification_partition() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET lock_timeout = '100ms'
AS $$
DECLARE
  old record;
BEGIN
  SELECT name, until INTO old FROM public.notification_partitions ORDER BY start LIMIT 1;
  IF NOT FOUND OR old.until > public.notifications_over()
    OR EXISTS (SELECT FROM public.user_stamps WHERE inbox_floor < old.until)
  THEN RETURN 0; END IF;
  LOCK TABLE ONLY public.notifications IN ACCESS EXCLUSIVE MODE;
  -- Nothing is filed now. Meanwhile, a user with a lower floor may have registered, whose clock was behind.
  IF EXISTS (SELECT FROM public.user_stamps WHERE inbox_floor < old.until) THEN RETURN 0; END IF;
  EXECUTE format('DROP TABLE IF EXISTS public.%I', old.name);
  RETURN 1;
END
$$;
REVOKE EXECUTE ON FUNCTION drop_notification_partition FROM PUBLIC;

-- Also for the last 90 days, which an import may fill.
DO $$ BEGIN
  PERFORM make_notification_partition(now() + period * notification_span()) FROM generate_series(-3, 1) AS period;
END $$;

-- Types that a user has turned off on their devices.
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
  -- Whether the app has the sentences of notifications in the user's language.
  localizes boolean NOT NULL DEFAULT false
    CONSTRAINT only_phones_localize CHECK (NOT localizes OR platform IN ('ios', 'android')),
  -- When the last badge-only pushes were sent, up to three. They limit the next one.
  badges_sent_at timestamptz[] NOT NULL DEFAULT '{}',
  -- When the last pushes that wake the app were sent, up to two. They limit the next one.
  woken_at timestamptz[] NOT NULL DEFAULT '{}',
  -- Signs a webhook's deliveries, sealed with a key that the database does not have. The previous one stays valid for a
  -- while.
  sealed_secret bytea,
  sealed_previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- When an app last registered the token. What Apple found before says nothing about it.
  registered_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT webhook_has_a_secret CHECK ((platform = 'webhook') = (sealed_secret IS NOT NULL))
);
-- A phone's token belongs to the last user to register it. A webhook's URL belongs to each user who registers it.
CREATE UNIQUE INDEX device_token_taken ON devices (platform, token) WHERE platform <> 'webhook';
CREATE UNIQUE INDEX webhook_registered_twice ON devices (user_id, token) WHERE platform = 'webhook';
CREATE INDEX devices_of_user ON devices (user_id);
CREATE INDEX devices_of_session ON devices (session_id);

-- One row for each notification and device, and one of type 'badge' for a device whose badge must change. Only the
-- oldest row of a device and subject can be claimed, together with rows that directly follow it.
CREATE TABLE deliveries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  notification_id uuid NOT NULL,
  recipient_id uuid NOT NULL,
  device_id uuid NOT NULL,
  type text NOT NULL,
  subject_id uuid NOT NULL,
  person_id uuid,
  payload jsonb NOT NULL,
  -- When the change was made.
  created_at timestamptz NOT NULL,
  due_at timestamptz NOT NULL DEFAULT now(),
  -- The number of failed sends. Waiting for a local resource does not count, and neither does the death of a worker.
  attempts integer NOT NULL DEFAULT 0,
  -- How many workers died while this row was in flight.
  deaths integer NOT NULL DEFAULT 0,
  last_error text,
  -- A claim: its worker, its end, and the fencing token that an acknowledgement must match. `worker_id` stays when the
  -- claim ends: a row that a worker has leased may have been sent.
  worker_id uuid,
  leased_until timestamptz,
  lease uuid,
  -- Set: a dead letter. It blocks nothing behind it.
  died_at timestamptz,
  -- See `notification_queue`.
  trace text,
  guest_id uuid GENERATED ALWAYS AS (
    (CASE WHEN type = 'answer-proposed' THEN payload->>'proposalId' ELSE payload->>'guestId' END)::uuid
  ) STORED
)
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.5);
CREATE INDEX deliveries_due ON deliveries (due_at, id) WHERE died_at IS NULL;
CREATE INDEX deliveries_in_order ON deliveries (device_id, subject_id, id) WHERE died_at IS NULL;
CREATE INDEX deliveries_of_recipient ON deliveries (recipient_id);
CREATE INDEX deliveries_by_person ON deliveries (person_id) WHERE person_id IS NOT NULL;
CREATE INDEX deliveries_by_guest ON deliveries (guest_id) WHERE guest_id IS NOT NULL;
-- Rows that were in flight when workers died several times in a row. A worker sends one of them at a time.
CREATE INDEX suspected_deliveries ON deliveries (due_at, id) WHERE deaths >= 2 AND died_at IS NULL;
CREATE INDEX deliveries_of_several ON deliveries (subject_id) WHERE payload ? 'guests';
CREATE INDEX dead_deliveries ON deliveries (died_at) WHERE died_at IS NOT NULL;

-- Mails on their way to the mail webhook. The token itself is not stored.
CREATE TABLE mails (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The same at every attempt.
  mail_id uuid NOT NULL DEFAULT uuid_v7(),
  type text NOT NULL,
  -- The reader: a user, or a visitor without an account.
  user_id uuid,
  visitor_id uuid,
  -- The mailed token, for types that carry one.
  mail_token_id uuid,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  deaths integer NOT NULL DEFAULT 0,
  last_error text,
  worker_id uuid,
  leased_until timestamptz,
  lease uuid,
  died_at timestamptz,
  -- See `notification_queue`.
  trace text DEFAULT nullif(current_setting('muster.trace', true), ''),
  CONSTRAINT mail_has_one_reader CHECK ((user_id IS NULL) <> (visitor_id IS NULL))
);
CREATE INDEX mails_due ON mails (due_at, id) WHERE died_at IS NULL;
CREATE INDEX mails_of_user ON mails (user_id);
CREATE INDEX mails_of_visitor ON mails (visitor_id) WHERE visitor_id IS NOT NULL;
CREATE INDEX dead_mails ON mails (died_at) WHERE died_at IS NOT NULL;

-- The mails of the last 24 hours that a limit counts: mails to addresses that no one has proven, and codes and resets
-- for the owners of proven ones. One row for each mail that may leave, written before the change that queues it. All
-- but the host are MACs, made with a key that the database does not have.
CREATE TABLE mail_attempts (
  -- What asked for the mail, such as a form, and how often it has: a repeated request counts once, whatever address it
  -- then names.
  id uuid NOT NULL,
  ordinal integer NOT NULL,
  -- Each budget has limits of its own, so that strangers use up nothing of an owner's.
  budget text NOT NULL CONSTRAINT mail_budget CHECK (budget IN ('stranger', 'owner', 'known', 'session')),
  kind text NOT NULL,
  mailbox bytea NOT NULL,
  domain bytea NOT NULL,
  -- The client's IPv4 /24 or IPv6 /48, and in an IPv6 network also its /56 and /64.
  network bytea NOT NULL,
  site bytea,
  subnet bytea,
  -- The host whose link caused the mail. Not a reference: the row outlives the account by a day at most.
  host_id uuid,
  asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT mail_counted_once PRIMARY KEY (id, ordinal)
);
CREATE INDEX mail_attempts_to_mailbox ON mail_attempts (mailbox, asked_at);
CREATE INDEX mail_attempts_to_domain ON mail_attempts (domain, asked_at);
CREATE INDEX mail_attempts_from_network ON mail_attempts (network, asked_at);
CREATE INDEX mail_attempts_of_host ON mail_attempts (host_id, asked_at) WHERE host_id IS NOT NULL;
CREATE INDEX mail_attempts_by_age ON mail_attempts (asked_at);

-- Mailboxes whose readers want no mail that anyone can cause. A MAC is all that is kept. See `mail_attempts`.
CREATE TABLE mail_optouts (
  mailbox bytea PRIMARY KEY,
  opted_out_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Apple's grants to revoke after an account is deleted. A row names no user.
CREATE TABLE apple_revocations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  sealed_grant bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  due_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  deaths integer NOT NULL DEFAULT 0,
  last_error text,
  worker_id uuid,
  leased_until timestamptz,
  lease uuid,
  died_at timestamptz
);
CREATE INDEX apple_revocations_due ON apple_revocations (due_at, id) WHERE died_at IS NULL;
CREATE INDEX dead_apple_revocations ON apple_revocations (died_at) WHERE died_at IS NOT NULL;

-- Workers. Each sends a heartbeat every second. When a lease has expired, the heartbeat distinguishes a dead worker
-- from a slow one.
CREATE TABLE workers (
  id uuid PRIMARY KEY,
  heartbeat_at timestamptz NOT NULL DEFAULT now(),
  -- Since when the heartbeats have come without a gap. After an outage of the database, or a jump of its clock, all
  -- heartbeats are old. A worker treats others as dead only after they have had time to send one.
  steady_since timestamptz NOT NULL DEFAULT now()
)
WITH (fillfactor = 50);

-- down

DROP TABLE workers;
DROP TABLE apple_revocations;
DROP TABLE mail_optouts;
DROP TABLE mail_attempts;
DROP TABLE mails;
DROP TABLE deliveries;
DROP TABLE devices;
DROP TABLE muted_notifications;
DROP FUNCTION drop_notification_partition;
DROP FUNCTION make_notification_partitions;
DROP FUNCTION make_notification_partition;
DROP VIEW notification_partitions;
DROP FUNCTION notifications_over;
DROP TABLE notifications;
DROP FUNCTION notification_period;
DROP AGGREGATE merged_payload(jsonb);
DROP FUNCTION merged_payload(jsonb, jsonb);
DROP FUNCTION notification_id;
DROP TABLE notification_queue;
