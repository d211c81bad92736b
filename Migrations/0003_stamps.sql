-- Stamps: when each of a user's collections last changed. One row for each user, one column for each collection. The
-- row is created with the user, so a change always finds a row to update. The row's lock makes each column rise in
-- commit order.

-- The time that one partition of `notifications` spans. Inboxes keep items for three to four of these.
CREATE FUNCTION notification_span() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN interval '720 hours';

CREATE TABLE user_stamps (
  user_id uuid PRIMARY KEY CONSTRAINT stamps_belong_to_a_user REFERENCES users ON DELETE CASCADE,
  profile timestamptz NOT NULL DEFAULT clock_timestamp(),
  friends timestamptz NOT NULL DEFAULT clock_timestamp(),
  friend_requests timestamptz NOT NULL DEFAULT clock_timestamp(),
  sent_friend_requests timestamptz NOT NULL DEFAULT clock_timestamp(),
  events timestamptz NOT NULL DEFAULT clock_timestamp(),
  invitations timestamptz NOT NULL DEFAULT clock_timestamp(),
  blocks timestamptz NOT NULL DEFAULT clock_timestamp(),
  notifications timestamptz NOT NULL DEFAULT clock_timestamp(),
  notification_preferences timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The inbox shows items that were filed at this time or later. It rises with the stamp of `notifications` when it hides
  -- items, which are deleted afterwards. Items are filed above it.
  inbox_floor timestamptz NOT NULL DEFAULT now() - 3 * notification_span()
)
-- Room for new versions on the same page: an update then touches no index.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
-- For the floors that are to rise. They do so once in 30 days, so other updates still touch no index.
CREATE INDEX user_stamps_by_inbox_floor ON user_stamps (inbox_floor);

-- down

DROP TABLE user_stamps;
DROP FUNCTION notification_span;
