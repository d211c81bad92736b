-- Friends and friend requests.

CREATE TABLE friend_requests (
  id uuid PRIMARY KEY,
  sender_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  receiver_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- The row stays when the request is closed, so that a repeated verb gets the same response.
  status text NOT NULL DEFAULT 'pending'
    CONSTRAINT friend_request_status CHECK (status IN ('pending', 'accepted', 'declined', 'cancelled')),
  -- Sent by an account that had proven no address and has no identity. While it is pending, it waits in a folder of its
  -- own, and its receiver gets no notification. False once the sender proves an address.
  filtered boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz,
  CONSTRAINT no_friend_request_to_oneself CHECK (sender_id <> receiver_id)
);
CREATE UNIQUE INDEX one_pending_friend_request_per_pair
  ON friend_requests (least(sender_id, receiver_id), greatest(sender_id, receiver_id))
  WHERE status = 'pending';
-- The folder has an index of its own: a flood in it costs nothing elsewhere.
CREATE INDEX friend_requests_received ON friend_requests (receiver_id, id) WHERE status = 'pending' AND NOT filtered;
CREATE INDEX friend_requests_filtered ON friend_requests (receiver_id, id) WHERE status = 'pending' AND filtered;
CREATE INDEX friend_requests_sent ON friend_requests (sender_id, id) WHERE status = 'pending';
-- For counting the declined and cancelled requests of a sender to one receiver.
CREATE INDEX friend_requests_in_vain ON friend_requests (sender_id, receiver_id, closed_at)
  WHERE status IN ('declined', 'cancelled');
-- All requests of a user, closed ones included: for exports, deletions and the limit of a day. By time, because clients
-- make ids.
CREATE INDEX friend_requests_of_sender ON friend_requests (sender_id, created_at);
CREATE INDEX friend_requests_of_receiver ON friend_requests (receiver_id, id);

-- One row for each pair.
CREATE TABLE friendships (
  user_a uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  user_b uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  since timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_a, user_b),
  CONSTRAINT friendship_order CHECK (user_a < user_b)
);
CREATE INDEX friendships_reversed ON friendships (user_b, user_a);

-- The same pairs, seen from both sides.
CREATE VIEW friends AS
  SELECT user_a AS user_id, user_b AS friend_id, since FROM friendships
  UNION ALL
  SELECT user_b AS user_id, user_a AS friend_id, since FROM friendships;

-- down

DROP VIEW friends;
DROP TABLE friendships;
DROP TABLE friend_requests;
