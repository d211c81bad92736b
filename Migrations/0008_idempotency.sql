-- Responses to writes that carried an Idempotency-Key, kept for 24 hours. A repeated request gets the first response.

CREATE TABLE idempotency_keys (
  -- SHA-256 of the user, the method, the path and the key.
  digest bytea PRIMARY KEY,
  user_id uuid NOT NULL,
  -- The other users whom the request is about. A block between one of them and the user deletes the row.
  about_user_ids uuid[] NOT NULL DEFAULT '{}',
  -- The event that the response shows, and the other users and the visitors in it. If a block hides one of them from
  -- the user by now, a repeated request gets the event as it is.
  event_id uuid,
  shown_ids uuid[] NOT NULL DEFAULT '{}',
  -- HMAC of the request's body under the key with this id.
  kid text NOT NULL,
  fingerprint bytea NOT NULL,
  -- Encrypted. NULL for a registration, whose tokens are not stored, and once a visitor is gone whose name it
  -- has.
  sealed_response bytea,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idempotency_keys_of_user ON idempotency_keys (user_id);
CREATE INDEX idempotency_keys_of_event ON idempotency_keys (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Ids of friend requests and events that are gone with an account, without end. Clients make such ids. If one were free
-- again, another user who knows it could tell that the account is gone, and has not blocked them.
CREATE TABLE spent_ids (
  id uuid,
  kind text CONSTRAINT spent_id_kind CHECK (kind IN ('event', 'friend-request')),
  -- The sender of a friend request to the account that is gone. No reference: it would lock another user's row.
  owner_id uuid,
  PRIMARY KEY (id, kind)
);
CREATE INDEX spent_ids_of_owner ON spent_ids (owner_id) WHERE owner_id IS NOT NULL;

-- down

DROP TABLE spent_ids;
DROP TABLE idempotency_keys;
