-- Accounts, their sessions, and the stamps of their collections.

-- A time-ordered UUID (RFC 9562, version 7): new rows land at the right edge of their index.
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(
    set_bit(set_bit(
      overlay(
        uuid_send(gen_random_uuid())
        PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        FROM 1 FOR 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;

CREATE TABLE users (
  id uuid PRIMARY KEY,
  -- Shown as the user wrote it, unique without regard to case.
  username text NOT NULL CONSTRAINT username_form CHECK (username ~ '^[A-Za-z0-9._-]{3,30}$'),
  email text NOT NULL CONSTRAINT email_length CHECK (char_length(email) <= 254),
  display_name text NOT NULL CONSTRAINT display_name_length CHECK (char_length(display_name) BETWEEN 1 AND 100),
  bio text CONSTRAINT bio_length CHECK (char_length(bio) <= 500),
  picture_url text,
  -- The algorithm's parameters are part of it, so that they can be raised at the next login.
  password_hash text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX username_taken ON users (lower(username));
CREATE UNIQUE INDEX email_taken ON users (lower(email));

-- One row for each signed-in device, whatever number of times its tokens rotate. Nothing secret is stored: a refresh
-- token is a MAC over (id, counter, branch, kid).
CREATE TABLE sessions (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  device text CONSTRAINT device_length CHECK (char_length(device) <= 100),
  counter bigint NOT NULL DEFAULT 0,
  branch integer NOT NULL DEFAULT 0,
  -- The branch of the token that the current one replaced: only that one may be shown again when an answer was lost.
  parent_branch integer NOT NULL DEFAULT 0,
  rotated_at timestamptz NOT NULL,
  kid text NOT NULL,
  created_at timestamptz NOT NULL,
  ended_at timestamptz
);
CREATE INDEX sessions_of_user ON sessions (user_id);
-- Every process reads the sessions ended a short while ago, several times a second.
CREATE INDEX sessions_by_end ON sessions (ended_at) WHERE ended_at IS NOT NULL;

CREATE TYPE collection AS ENUM (
  'profile', 'friends', 'friendRequests', 'sentFriendRequests', 'events', 'invitations', 'blocks', 'notifications',
  'notificationPreferences'
);

-- When a collection of a user last changed. A row for each pair from the user's first day on, so that a change is
-- always an update, whose row lock orders the stamps as the transactions commit.
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
DROP TABLE sessions;
DROP TABLE users;
DROP FUNCTION uuid_v7;
