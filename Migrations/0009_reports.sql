-- Reports of users, events and visitors, for operators.

CREATE TABLE reports (
  id uuid PRIMARY KEY,
  -- NULL once the reporter's account is deleted, and for a report from the page of a share link.
  reporter_id uuid REFERENCES users ON DELETE SET NULL,
  -- What is reported. No foreign keys: a report outlives what it is about.
  user_id uuid,
  event_id uuid,
  visitor_id uuid,
  -- The share link on whose page someone without an account reported the event.
  link_id uuid,
  -- Whose content it is: the reported user, or the event's creator. NULL for a visitor, and if the creator's
  -- account was deleted before.
  owner_id uuid,
  -- The content at the time of the report, so that an operator can judge it after an edit.
  snapshot jsonb NOT NULL,
  -- The reported user's picture at that time, a JPEG.
  picture bytea,
  reason text NOT NULL CONSTRAINT report_reason
    CHECK (reason IN ('spam', 'harassment', 'hate', 'violence', 'nudity', 'impersonation', 'other')),
  -- The reporter's words. NULL once the reporter's account is deleted.
  text text CONSTRAINT report_text_length CHECK (char_length(text) <= 2000),
  created_at timestamptz NOT NULL DEFAULT now(),
  closed_at timestamptz,
  -- The operator's words.
  closing_note text CONSTRAINT report_closing_note_length CHECK (char_length(closing_note) <= 2000),
  -- When the worker deletes the report. An open one stays until an operator has decided it.
  expires_at timestamptz CONSTRAINT only_closed_reports_expire CHECK (expires_at IS NULL OR closed_at IS NOT NULL),
  CONSTRAINT report_of_one_thing CHECK (num_nonnulls(user_id, event_id, visitor_id) = 1),
  CONSTRAINT report_from_a_page CHECK (link_id IS NULL OR reporter_id IS NULL AND event_id IS NOT NULL),
  CONSTRAINT no_report_of_oneself CHECK (reporter_id <> owner_id)
);
-- Pictures are compressed already.
ALTER TABLE reports ALTER COLUMN picture SET STORAGE EXTERNAL;
-- Repeated reports find the open one, even if they arrive at once.
CREATE UNIQUE INDEX one_open_report_per_reporter ON reports (reporter_id, coalesce(user_id, event_id, visitor_id))
  WHERE closed_at IS NULL;
-- For the limit on reports from pages.
CREATE INDEX reports_from_pages ON reports (event_id) WHERE link_id IS NOT NULL AND closed_at IS NULL;
CREATE INDEX reports_of_visitor ON reports (visitor_id) WHERE visitor_id IS NOT NULL;
CREATE INDEX reports_open ON reports (created_at, id) WHERE closed_at IS NULL;
-- For the limit, and for deletions of accounts.
CREATE INDEX reports_of_reporter ON reports (reporter_id, id);
CREATE INDEX reports_of_owner ON reports (owner_id, id);
CREATE INDEX reports_to_delete ON reports (expires_at) WHERE expires_at IS NOT NULL;

-- down

DROP TABLE reports;
