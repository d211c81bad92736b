-- Stamps: when each of a user's collections changed last.

CREATE TYPE collection AS ENUM (
  'profile', 'friends', 'friendRequests', 'sentFriendRequests', 'events', 'invitations', 'blocks', 'notifications',
  'notificationPreferences'
);

CREATE TABLE collection_stamps (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  collection collection NOT NULL,
  stamp timestamptz NOT NULL,
  PRIMARY KEY (user_id, collection)
)
-- Room for new versions beside the old ones: an update then touches no index.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- down

DROP TABLE collection_stamps;
DROP TYPE collection;
