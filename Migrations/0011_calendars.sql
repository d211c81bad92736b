-- Calendar feeds: a secret link for each user who wants one.

-- Nothing secret is stored: the link has a MAC over the id, made with a key that the database does not have.
CREATE TABLE calendar_links (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  -- A new link has a new id, and the old link stops working.
  id uuid NOT NULL CONSTRAINT calendar_link_taken UNIQUE,
  -- The sessions that made or read the link. If another session ends one of them, the link is revoked.
  session_ids uuid[] NOT NULL,
  -- Whether a session read the link that has since ended otherwise, and is no longer among them.
  had_other_readers boolean NOT NULL DEFAULT false,
  -- The epoch of sessions in which it was made. The end of everyone's sessions revokes it.
  epoch bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- down

DROP TABLE calendar_links;
