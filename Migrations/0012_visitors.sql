-- Visitors: guests without an account, who answer on the page of a share link.

CREATE TABLE visitors (
  -- Chosen when the form is shown, so that a form that is sent twice is one answer.
  id uuid PRIMARY KEY,
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  -- Not a reference: the link may be revoked, and the visitor stays.
  link_id uuid NOT NULL,
  -- The server key that makes the visitor's tokens. The database has neither the key nor a token.
  kid text NOT NULL,
  name text NOT NULL CONSTRAINT visitor_name_length CHECK (char_length(name) BETWEEN 1 AND 100),
  email text CONSTRAINT visitor_email_length CHECK (char_length(email) BETWEEN 3 AND 254),
  email_key text COLLATE "C" GENERATED ALWAYS AS (ascii_folded(email)) STORED,
  -- When a reader of the address's mail confirmed it.
  confirmed_at timestamptz,
  status text NOT NULL CONSTRAINT visitor_status CHECK (status IN ('pending', 'going', 'maybe', 'declined', 'waitlisted')),
  -- The answer that a pending visitor gets when a host approves.
  wanted text CONSTRAINT visitor_wanted CHECK (wanted IN ('going', 'maybe', 'declined')),
  plus_ones integer NOT NULL DEFAULT 0 CONSTRAINT visitor_plus_ones CHECK (plus_ones BETWEEN 0 AND 10),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  answered_at timestamptz NOT NULL,
  unsubscribed_at timestamptz,
  -- Whether the hosts' next notification is about the visitor's latest answer: see `visitor_news`.
  has_news boolean NOT NULL DEFAULT false,
  -- How often a mail that asks to confirm the address was asked for.
  mails_asked integer NOT NULL DEFAULT 0,
  -- When the gate held back the last one. See `mail_attempts`.
  held_at timestamptz,
  -- The times of the informative mails of the last 24 hours, which are limited.
  informed_at timestamptz[] NOT NULL DEFAULT '{}',
  -- When the row is deleted: a day after the answer, unless the address is confirmed; 90 days after the event.
  lapses_at timestamptz,
  -- The account that has verified the address. A worker merges the visitor into it, or proposes the answer to it.
  merges_into uuid,
  -- Set: the account has an answer of its own, and decides about this one.
  proposed_at timestamptz,
  CONSTRAINT pending_visitor_wants_something CHECK ((status = 'pending') = (wanted IS NOT NULL)),
  CONSTRAINT visitor_confirms_an_address CHECK (confirmed_at IS NULL OR email IS NOT NULL),
  CONSTRAINT visitor_is_proposed_to_an_account CHECK (proposed_at IS NULL OR merges_into IS NOT NULL)
);
-- Guest lists, in the order of ids.
CREATE INDEX visitors_of_event ON visitors (event_id, id);
-- As `invitations_in_order`.
CREATE INDEX visitors_in_order ON visitors (
  event_id, array_position(ARRAY['going', 'maybe', 'waitlisted', 'invited'], status), created_at, id
);
-- As `invitations_waiting`.
CREATE INDEX visitors_waiting ON visitors (event_id, answered_at, id) WHERE status = 'waitlisted';
CREATE INDEX visitors_to_lapse ON visitors (lapses_at, id) WHERE lapses_at IS NOT NULL;
CREATE INDEX visitors_with_news ON visitors (event_id) WHERE has_news;
-- For the hosts of a link: the visitors who wait for a mail that the gate held back.
CREATE INDEX held_visitors ON visitors (link_id) WHERE held_at IS NOT NULL AND confirmed_at IS NULL;
CREATE INDEX visitors_by_email ON visitors (email_key) WHERE confirmed_at IS NOT NULL;
CREATE INDEX visitors_to_merge ON visitors (id) WHERE merges_into IS NOT NULL AND proposed_at IS NULL;
CREATE INDEX visitors_of_account ON visitors (merges_into, proposed_at, id) WHERE merges_into IS NOT NULL;

-- All guests of an event: those with an account, whose id is the user's, and visitors. Statements about both read this
-- view. Each half has indexes for the orders in which it is read.
CREATE VIEW event_guests AS
  SELECT event_id, user_id AS id, user_id, NULL::text AS name, status, plus_ones, invited_at AS since, answered_at
  FROM invitations
  UNION ALL
  SELECT event_id, id, NULL::uuid, name, status, plus_ones, created_at, answered_at
  FROM visitors;

-- The visitors at the events that a user hosts, for the export.
CREATE VIEW hosted_visitors AS
  SELECT h.user_id AS host_id, v.*
  FROM visitors AS v
  JOIN event_hosts AS h ON h.event_id = v.event_id;

-- What a user may accept or decline: answers that were given as a visitor with their address, while they have another
-- one, and offers to host an event.
CREATE VIEW proposals AS
  SELECT id, merges_into AS user_id, event_id, 'answer' AS kind, name, status, plus_ones, proposed_at AS since
  FROM visitors WHERE proposed_at IS NOT NULL
  UNION ALL
  SELECT id, user_id, event_id, 'host', NULL, NULL, 0, offered_at
  FROM host_offers;

-- The forms of visitors who are gone, until the forms expire: sent again, they bring no one back.
CREATE TABLE spent_forms (
  -- The visitor's id.
  id uuid PRIMARY KEY,
  expires_at timestamptz NOT NULL
);
CREATE INDEX spent_forms_by_expiry ON spent_forms (expires_at);

-- A form lives for 24 hours, and was shown before it was sent. A trigger, because visitors go in many ways: also with
-- their event.
CREATE FUNCTION remember_spent_forms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO spent_forms (id, expires_at)
  SELECT id, created_at + interval '24 hours' FROM gone WHERE created_at > clock_timestamp() - interval '24 hours'
  ON CONFLICT (id) DO NOTHING;
  RETURN NULL;
END
$$;
CREATE TRIGGER visitors_leave AFTER DELETE ON visitors
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION remember_spent_forms();

-- When the hosts of an event were last notified of a visitor's answer. Further answers within a minute become one
-- notification, which is due at its end.
CREATE TABLE visitor_news (
  event_id uuid PRIMARY KEY REFERENCES events ON DELETE CASCADE,
  -- The visitor of that notification, whom the next one also counts, because it replaces that one. NULL if it was about
  -- answers that had waited.
  first_id uuid,
  told_at timestamptz NOT NULL,
  -- NULL while no answer waits.
  due_at timestamptz
);
CREATE INDEX visitor_news_due ON visitor_news (due_at) WHERE due_at IS NOT NULL;

-- down

DROP TABLE visitor_news;
DELETE FROM mails WHERE visitor_id IS NOT NULL;
DROP VIEW proposals;
DROP VIEW hosted_visitors;
DROP VIEW event_guests;
-- The counts without visitors.
UPDATE events AS e
SET going_count = e.going_count - v.going, maybe_count = e.maybe_count - v.maybe,
  declined_count = e.declined_count - v.declined, waitlisted_count = e.waitlisted_count - v.waitlisted,
  pending_count = e.pending_count - v.pending, plus_ones_count = e.plus_ones_count - v.plus_ones, visitor_count = 0
FROM (
  SELECT event_id, sum(plus_ones) AS plus_ones,
    coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'going'), 0) AS going,
    coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'maybe'), 0) AS maybe,
    coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'declined'), 0) AS declined,
    coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'waitlisted'), 0) AS waitlisted,
    coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'pending'), 0) AS pending
  FROM visitors
  GROUP BY event_id
) AS v
WHERE e.id = v.event_id;
DROP TABLE visitors;
DROP FUNCTION remember_spent_forms;
DROP TABLE spent_forms;
