-- Calendar feeds: a secret link for each user who wants one.

-- Nothing secret is stored: the link has a MAC over the id, made with a key that the database does not have.
CREATE TABLE calendar_links (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  -- A new link has a new id, and the old link stops working.
  id uuid NOT NULL CONSTRAINT calendar_link_taken UNIQUE,
  -- The sessions that have made or read the link. The end of one of them by another revokes the link.
  session_ids uuid[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- down

DROP TABLE calendar_links;
