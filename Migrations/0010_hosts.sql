-- The hosts' daily work: co-hosts, deadlines for answers, and reminders.

-- The hosts of an event beside its creator. They hold no invitation to it.
CREATE TABLE event_co_hosts (
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- Rises within an event: the one who has served longest comes first.
  added_at timestamptz NOT NULL,
  PRIMARY KEY (event_id, user_id)
);
CREATE INDEX event_co_hosts_of_user ON event_co_hosts (user_id, event_id);

CREATE OR REPLACE VIEW event_hosts AS
  SELECT id AS event_id, creator_id AS user_id, 'creator' AS role FROM events WHERE creator_id IS NOT NULL
  UNION ALL
  SELECT event_id, user_id, 'host' FROM event_co_hosts;

-- After this time, only hosts set answers. The service keeps it before the start.
ALTER TABLE events ADD COLUMN answer_by timestamptz
  CONSTRAINT event_answer_by_is_finite CHECK (isfinite(answer_by));

-- When a host last reminded the guest to answer.
ALTER TABLE invitations ADD COLUMN reminded_at timestamptz;

-- down

ALTER TABLE invitations DROP COLUMN reminded_at;
ALTER TABLE events DROP COLUMN answer_by;

DROP VIEW event_hosts;
CREATE VIEW event_hosts AS
  SELECT id AS event_id, creator_id AS user_id FROM events WHERE creator_id IS NOT NULL;
DROP TABLE event_co_hosts;
