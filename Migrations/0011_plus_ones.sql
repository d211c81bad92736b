-- Guests may bring people along.

ALTER TABLE events
  -- The most people whom one guest may bring. Lowering it changes no answer.
  ADD COLUMN max_plus_ones integer NOT NULL DEFAULT 0
    CONSTRAINT event_max_plus_ones CHECK (max_plus_ones BETWEEN 0 AND 10),
  -- The counts of the states are numbers of places: 1 + plus_ones for each guest. Less this sum, they are the number of
  -- invitations.
  ADD COLUMN plus_ones_count integer NOT NULL DEFAULT 0
    CONSTRAINT event_plus_ones_count_not_negative CHECK (plus_ones_count >= 0);

ALTER TABLE invitations
  ADD COLUMN plus_ones integer NOT NULL DEFAULT 0
    CONSTRAINT invitation_plus_ones CHECK (plus_ones BETWEEN 0 AND 10);

-- The lists of a user's events read plus_ones, too, so that they still need only the index.
DROP INDEX invitations_of_user;
CREATE INDEX invitations_of_user ON invitations (user_id, event_id) INCLUDE (status, plus_ones);

-- down

DROP INDEX invitations_of_user;
CREATE INDEX invitations_of_user ON invitations (user_id, event_id) INCLUDE (status);
UPDATE events AS e
SET invited_count = e.invited_count - i.invited, going_count = e.going_count - i.going,
  maybe_count = e.maybe_count - i.maybe, declined_count = e.declined_count - i.declined,
  waitlisted_count = e.waitlisted_count - i.waitlisted
FROM (
  SELECT event_id,
    coalesce(sum(plus_ones) FILTER (WHERE status = 'invited'), 0) AS invited,
    coalesce(sum(plus_ones) FILTER (WHERE status = 'going'), 0) AS going,
    coalesce(sum(plus_ones) FILTER (WHERE status = 'maybe'), 0) AS maybe,
    coalesce(sum(plus_ones) FILTER (WHERE status = 'declined'), 0) AS declined,
    coalesce(sum(plus_ones) FILTER (WHERE status = 'waitlisted'), 0) AS waitlisted
  FROM invitations
  WHERE plus_ones > 0
  GROUP BY event_id
) AS i
WHERE e.id = i.event_id;
ALTER TABLE invitations DROP COLUMN plus_ones;
ALTER TABLE events DROP COLUMN max_plus_ones, DROP COLUMN plus_ones_count;
