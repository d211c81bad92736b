-- Share links: a page about an event, for people who have the link.

CREATE TABLE share_links (
  id uuid PRIMARY KEY,
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  -- The host who created it. The link ends with their account.
  creator_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  kind text NOT NULL CONSTRAINT share_link_kind CHECK (kind IN ('view', 'answer')),
  shows text NOT NULL CONSTRAINT share_link_shows CHECK (shows IN ('counts', 'names')),
  -- The most people whom a visitor may bring. The event's own maximum is for invitees.
  max_plus_ones integer NOT NULL DEFAULT 0
    CONSTRAINT share_link_max_plus_ones CHECK (max_plus_ones BETWEEN 0 AND 10),
  -- Whether the form asks for an e-mail address.
  email text NOT NULL DEFAULT 'optional'
    CONSTRAINT share_link_email CHECK (email IN ('required', 'optional', 'none')),
  -- Whether a host must approve each guest first.
  approval boolean NOT NULL DEFAULT true,
  -- The server key that makes the token. The database has neither the key nor the token.
  kid text NOT NULL,
  expires_at timestamptz,
  -- How many guests may join through the link, and how many have. NULL: no limit.
  max_guests integer CONSTRAINT share_link_limit_positive CHECK (max_guests > 0),
  joined_count integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX share_links_of_event ON share_links (event_id, id);
CREATE INDEX share_links_of_creator ON share_links (creator_id, id);

-- down

DROP TABLE share_links;
