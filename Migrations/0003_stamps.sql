-- Stamps: when each of a user's collections last changed. One row for each user, one column for each collection. The
-- row is created with the user, so a change always finds a row to update. The row's lock makes each column rise in
-- commit order.

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
  notification_preferences timestamptz NOT NULL DEFAULT clock_timestamp()
)
-- Room for new versions on the same page: an update then touches no index.
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- down

DROP TABLE user_stamps;
