-- Events, their hosts and invitations.

CREATE TABLE events (
  id uuid PRIMARY KEY,
  -- NULL once the creator's account is deleted: guests keep the event in their archive.
  creator_id uuid REFERENCES users ON DELETE SET NULL,
  title varchar(200) NOT NULL,
  note varchar(2000),
  start_time timestamptz NOT NULL,
  end_time timestamptz,
  time_zone text NOT NULL,
  -- The offsets from UTC, in seconds, with which the times were planned. A time and its offset are what the clocks in
  -- the time zone show then: at a repeated hour, two times differ by their offsets alone. When a government changes the
  -- rules, the worker moves the time, and the reading stays.
  start_offset integer NOT NULL,
  end_offset integer,
  answer_by_offset integer,
  -- The newest version of the time zone database by which a worker has looked at the times, such as 2026a. An older one
  -- never moves them back.
  zone_rules text COLLATE "C" NOT NULL,
  location_name varchar(200),
  latitude double precision,
  longitude double precision,
  url varchar(500),
  -- The most places for guests who are going, plus-ones included, from 1 to 10,000. Hosts take none. NULL: no limit.
  capacity integer,
  -- The most people whom one guest may bring, from 0 to 10. Lowering it changes no answer.
  max_plus_ones integer NOT NULL DEFAULT 0,
  -- After this time, only hosts set answers. The service keeps it before the start.
  answer_by timestamptz,
  -- 'scheduled' or 'cancelled'.
  status text NOT NULL DEFAULT 'scheduled',
  -- Counts the hosts' edits, for If-Match.
  version integer NOT NULL DEFAULT 1,
  -- How many places are in each state, 1 + plus_ones for each guest, updated by the writes that change one. Counting
  -- them on each read was over half of the cost of a feed. Pending groups wait for a host's approval, and take none of
  -- the event's places.
  pending_count integer NOT NULL DEFAULT 0,
  invited_count integer NOT NULL DEFAULT 0,
  going_count integer NOT NULL DEFAULT 0,
  maybe_count integer NOT NULL DEFAULT 0,
  declined_count integer NOT NULL DEFAULT 0,
  waitlisted_count integer NOT NULL DEFAULT 0,
  -- The people whom guests in all states bring. The sum of the counts less this one is the number of guests.
  plus_ones_count integer NOT NULL DEFAULT 0,
  -- The number of visitors in all states. An event without visitors costs no statement about them.
  visitor_count integer NOT NULL DEFAULT 0,
  -- False: the event has never had a co-host. A trigger sets it. Most events have none, and looking for them was a
  -- tenth of the cost of a feed.
  may_have_co_hosts boolean NOT NULL DEFAULT false,
  -- A day after the end, when the worker archives the event. An event without an end counts as six hours long.
  live_until timestamptz NOT NULL,
  -- Set: the event is in the archive. No list depends on the clock.
  archived_at timestamptz,
  -- The start of an archived event, which no longer changes. NULL while the event is live. The rows of its guests and
  -- co-hosts have a copy, so that lists find live events, and a page of the archive, without reading a user's past.
  archived_start timestamptz GENERATED ALWAYS AS (CASE WHEN archived_at IS NOT NULL THEN start_time END) STORED,
  -- When the guests are reminded. NULL: they were reminded, or will not be.
  remind_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  -- A reader's copy of a live event with its guests is fresh while it has this stamp. A trigger moves it.
  stamp timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Few checks: every change of an event and every answer updates its row, and each UPDATE parses all of them again.
  -- 14 took two thirds of an edit's UPDATE. So the type or the service checks a single value, except where a wrong one
  -- stops more than its own event: reminders cannot read past an infinite time.
  CONSTRAINT event_times CHECK (
    isfinite(start_time) AND isfinite(end_time) AND isfinite(answer_by) AND end_time > start_time),
  CONSTRAINT event_place_is_whole CHECK ((latitude IS NULL) = (longitude IS NULL)),
  CONSTRAINT event_counts_not_negative CHECK (
    least(
      invited_count, going_count, maybe_count, declined_count, waitlisted_count, pending_count, plus_ones_count,
      visitor_count
    ) >= 0)
)
-- Most rows are in the archive, and never change. By default, a vacuum waits until a fifth of the table is dead, which
-- may be many times the live part.
WITH (autovacuum_vacuum_scale_factor = 0.02);
-- As `invitations_of_user`.
CREATE INDEX events_of_creator ON events (creator_id, archived_start, id);
CREATE INDEX events_to_archive ON events (live_until) WHERE archived_at IS NULL;
-- For an operator's limit on the time in the archive.
CREATE INDEX events_to_delete ON events (archived_at) WHERE archived_at IS NOT NULL;
CREATE INDEX events_by_zone_rules ON events (zone_rules) WHERE archived_at IS NULL;
CREATE INDEX events_to_remind ON events (remind_at) WHERE remind_at IS NOT NULL;

-- The hosts of an event besides its creator. They have no invitation to it.
CREATE TABLE event_co_hosts (
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- Rises within an event: the one who has served longest comes first.
  added_at timestamptz NOT NULL,
  -- See `events`. Triggers keep it.
  archived_start timestamptz,
  PRIMARY KEY (event_id, user_id)
);
-- As `invitations_of_user`.
CREATE INDEX event_co_hosts_of_user ON event_co_hosts (user_id, archived_start, event_id);

-- Users whom the creator wants as co-hosts, and who have not accepted yet.
CREATE TABLE host_offers (
  id uuid PRIMARY KEY,
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  offered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT one_host_offer UNIQUE (event_id, user_id)
);
CREATE INDEX host_offers_of_user ON host_offers (user_id, offered_at, id);

-- Former co-hosts whose role another user has ended. They do not come back through a link, whose address they may know.
CREATE TABLE removed_hosts (
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  PRIMARY KEY (event_id, user_id)
);
CREATE INDEX removed_hosts_of_user ON removed_hosts (user_id);

-- A trigger, so that it also runs for an operator's statement.
CREATE FUNCTION note_co_host() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE events SET may_have_co_hosts = true WHERE id = NEW.event_id AND NOT may_have_co_hosts;
  RETURN NULL;
END
$$;
CREATE TRIGGER event_gets_co_host AFTER INSERT OR UPDATE OF event_id ON event_co_hosts
  FOR EACH ROW EXECUTE FUNCTION note_co_host();

-- Every change of what an event shows, of its hosts or of its guests updates the event's row, or
-- updates it only to fire this trigger: see `Event.moveStamps`. The row is locked, so the stamps of an event rise in the
-- order of commits. As in `Stamps.next`, a stamp that is ahead of the clock rises by a random amount.
CREATE FUNCTION move_event_stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.stamp := greatest(
    clock_timestamp(),
    OLD.stamp + interval '1 microsecond' + CASE WHEN OLD.stamp < clock_timestamp()
      THEN interval '0' ELSE random() * interval '10 milliseconds' END);
  RETURN NEW;
END
$$;
CREATE TRIGGER event_changes BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION move_event_stamp();

-- Who hosts which event. Ask here, not creator_id, unless only the creator is meant. added_at is NULL for the creator,
-- who comes first.
CREATE VIEW event_hosts AS
  SELECT id AS event_id, creator_id AS user_id, 'creator' AS role, NULL::timestamptz AS added_at, archived_start
  FROM events WHERE creator_id IS NOT NULL
  UNION ALL
  SELECT event_id, user_id, 'host', added_at, archived_start FROM event_co_hosts;

CREATE TABLE invitations (
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  status text NOT NULL DEFAULT 'invited'
    CONSTRAINT invitation_status
      CHECK (status IN ('pending', 'invited', 'going', 'maybe', 'declined', 'waitlisted')),
  -- The people whom the guest brings.
  plus_ones integer NOT NULL DEFAULT 0
    CONSTRAINT invitation_plus_ones CHECK (plus_ones BETWEEN 0 AND 10),
  invited_at timestamptz NOT NULL DEFAULT now(),
  answered_at timestamptz,
  -- When a host last reminded the guest to answer.
  reminded_at timestamptz,
  -- See `events`. Triggers keep it.
  archived_start timestamptz,
  PRIMARY KEY (event_id, user_id)
)
-- As `events`.
WITH (autovacuum_vacuum_scale_factor = 0.02);
-- The lists of a user's events need only this index: NULLs are one part of it, and the archive by time is the other. Two
-- partial indexes would find the same rows. But a deletion of an account looks for all of them, and finds none by a
-- partial index.
CREATE INDEX invitations_of_user ON invitations (user_id, archived_start, event_id) INCLUDE (status, plus_ones);
-- The first participants of an event, in the order of `Event.withParticipants`.
CREATE INDEX invitations_in_order ON invitations (
  event_id, array_position(ARRAY['going', 'maybe', 'waitlisted', 'invited'], status), invited_at, user_id
);
-- The waiting list, longest waiting first.
CREATE INDEX invitations_waiting ON invitations (event_id, answered_at, user_id) WHERE status = 'waitlisted';

-- Triggers, so that they also run for an operator's statement. The lock keeps an event from entering the archive between
-- this read and the end of the transaction. Changes that add guests or co-hosts hold a stronger one already.
CREATE FUNCTION copy_archived_start() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT archived_start INTO NEW.archived_start FROM events WHERE id = NEW.event_id FOR SHARE;
  RETURN NEW;
END
$$;
CREATE TRIGGER guest_is_added BEFORE INSERT OR UPDATE OF event_id ON invitations
  FOR EACH ROW EXECUTE FUNCTION copy_archived_start();
CREATE TRIGGER co_host_is_added BEFORE INSERT OR UPDATE OF event_id ON event_co_hosts
  FOR EACH ROW EXECUTE FUNCTION copy_archived_start();

-- Writes the rows of guests and co-hosts once, when their event enters the archive.
CREATE FUNCTION pass_on_archived_start() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE invitations SET archived_start = NEW.archived_start WHERE event_id = NEW.id;
  IF NEW.may_have_co_hosts THEN
    UPDATE event_co_hosts SET archived_start = NEW.archived_start WHERE event_id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER event_is_archived AFTER UPDATE OF archived_at, start_time ON events
  FOR EACH ROW WHEN (OLD.archived_start IS DISTINCT FROM NEW.archived_start) EXECUTE FUNCTION pass_on_archived_start();

-- down

DROP TABLE invitations;
DROP VIEW event_hosts;
DROP TABLE host_offers;
DROP TABLE removed_hosts;
DROP TABLE event_co_hosts;
DROP FUNCTION note_co_host;
DROP TABLE events;
DROP FUNCTION move_event_stamp;
DROP FUNCTION copy_archived_start;
DROP FUNCTION pass_on_archived_start;
