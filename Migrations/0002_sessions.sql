-- Logging in: sessions, provider identities, mailed tokens, and counts of failed attempts.

-- One row. Sessions that started in an earlier epoch have ended, whatever their rows say, so a new number ends all
-- sessions at once. It is a number and not a time, because clocks disagree, and sessions start while others end.
CREATE TABLE session_epoch (
  is_only boolean PRIMARY KEY DEFAULT true CONSTRAINT session_epoch_is_one_row CHECK (is_only),
  number bigint NOT NULL
);
INSERT INTO session_epoch (number) VALUES (0);

-- One row for each logged-in device, however often its tokens rotate. Nothing secret is stored: a refresh token is a
-- MAC over (id, counter, branch, kid).
CREATE TABLE sessions (
  id uuid PRIMARY KEY,
  -- NULL once the account is deleted: the ended session stays until its access tokens have expired.
  user_id uuid REFERENCES users ON DELETE SET NULL,
  device text CONSTRAINT device_length CHECK (char_length(device) <= 100),
  counter bigint NOT NULL DEFAULT 0,
  branch integer NOT NULL DEFAULT 0,
  -- The branch of the token that the current one replaced. Only that token is accepted again after a lost response.
  parent_branch integer NOT NULL DEFAULT 0,
  rotated_at timestamptz NOT NULL,
  kid text NOT NULL,
  created_at timestamptz NOT NULL,
  ended_at timestamptz,
  -- The epoch in which it started.
  epoch bigint NOT NULL DEFAULT 0,
  -- The transaction that ended it, which tells a process whether an earlier snapshot of its own showed the end already.
  -- NULL: the epoch ends it.
  ended_xid xid8,
  CONSTRAINT session_without_user_has_ended CHECK (user_id IS NOT NULL OR ended_at IS NOT NULL)
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_end ON sessions (ended_at) WHERE ended_at IS NOT NULL;
-- For reading the sessions that ended since the last read. Every process does so several times a second.
CREATE INDEX ended_sessions_by_transaction ON sessions (ended_xid, id) WHERE ended_xid IS NOT NULL;
-- For reading the ended sessions whose access tokens may still be valid, when a process starts. By the later of the two
-- times, because after a restored backup `rotated_at` may be before the last refresh. The condition on `ended_at` keeps
-- the planner from searching this index for transactions while the statistics are out of date.
CREATE INDEX ended_sessions_by_use ON sessions (greatest(rotated_at, ended_at), id)
  WHERE ended_at IS NOT NULL AND ended_xid IS NOT NULL;
-- For finding sessions that an epoch has ended and whose rows do not say so yet.
CREATE INDEX open_sessions_by_epoch ON sessions (epoch) WHERE ended_at IS NULL;

-- A trigger, so that it also runs for an operator's statement.
CREATE FUNCTION note_session_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Sessions that an epoch has ended need no entry of their own: there may be millions.
  IF NEW.epoch >= (SELECT number FROM session_epoch) THEN
    NEW.ended_xid := pg_current_xact_id();
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER session_ends BEFORE INSERT OR UPDATE OF ended_at ON sessions
  FOR EACH ROW WHEN (NEW.ended_at IS NOT NULL) EXECUTE FUNCTION note_session_end();

-- Accounts at Apple and Google, by the provider's own permanent id, never by an address: addresses change hands.
CREATE TABLE identities (
  provider text NOT NULL CONSTRAINT identity_provider CHECK (provider IN ('apple', 'google')),
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- Revokes Apple's grant when the account is deleted. Sealed with a key that the database does not have.
  sealed_grant bytea,
  -- The address of Apple's relay that forwards nothing, because the user has turned it off there, and the time of
  -- Apple's last notification about it.
  stopped_email text CONSTRAINT stopped_email_length CHECK (char_length(stopped_email) <= 254),
  stopped_email_key text COLLATE "C" GENERATED ALWAYS AS (ascii_folded(stopped_email)) STORED,
  relay_changed_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT identity_taken PRIMARY KEY (provider, subject),
  CONSTRAINT one_identity_per_provider UNIQUE (user_id, provider)
);
CREATE INDEX identities_by_stopped_email ON identities (stopped_email_key) WHERE stopped_email IS NOT NULL;

-- Identities that their users have revoked at the provider, and without which no one can log in to the account. If the
-- same person signs in again, the account is theirs again.
CREATE TABLE revoked_identities (
  provider text NOT NULL CONSTRAINT revoked_identity_provider CHECK (provider IN ('apple', 'google')),
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  revoked_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT one_account_per_revoked_identity PRIMARY KEY (provider, subject),
  CONSTRAINT one_revoked_identity_per_provider UNIQUE (user_id, provider)
);

-- Mailed tokens, each valid for one use. Nothing secret is stored: the mail has a MAC over the row.
CREATE TABLE mail_tokens (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  purpose text NOT NULL CONSTRAINT mail_token_purpose CHECK (
    purpose IN ('verify-email', 'reset-password', 'sign-in-code', 'undo-email-change')
  ),
  -- The address that it was mailed to. Using a `verify-email` token makes it the account's address, and using an
  -- `undo-email-change` token makes it that again.
  email text NOT NULL CONSTRAINT mail_token_email_length CHECK (char_length(email) <= 254),
  email_key text COLLATE "C" NOT NULL GENERATED ALWAYS AS (ascii_folded(email)) STORED,
  kid text NOT NULL,
  expires_at timestamptz NOT NULL
);
-- A newer token replaces the older one. Each change of address has an undo of its own: a thief's second change must not
-- replace the owner's undo of the first.
CREATE UNIQUE INDEX one_mail_token_per_purpose ON mail_tokens (user_id, purpose) WHERE purpose <> 'undo-email-change';
CREATE INDEX mail_tokens_of_user ON mail_tokens (user_id);
CREATE INDEX mail_tokens_by_expiry ON mail_tokens (expires_at);

-- The wrong codes of the last 24 hours, which are limited for each account. They are not a column of `mail_tokens`,
-- because a new code replaces the row there.
CREATE TABLE code_uses (
  id uuid PRIMARY KEY DEFAULT uuid_v7(),
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  kind text NOT NULL CONSTRAINT code_use_kind CHECK (kind = 'wrong'),
  used_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX code_uses_of_user ON code_uses (user_id, kind, used_at);
CREATE INDEX code_uses_by_time ON code_uses (used_at);

-- MACs of the networks, IPv4 /24 or IPv6 /48, that a user's sessions have come from. Codes that are asked for there have
-- a budget of their own, so that strangers elsewhere cannot use it up. See `mail_attempts`.
CREATE TABLE known_networks (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  network bytea NOT NULL,
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (user_id, network)
);
CREATE INDEX known_networks_by_age ON known_networks (seen_at);

-- Counts of failed attempts and of limited requests: by login, by address and so on. Each key is a digest.
CREATE TABLE throttles (
  key bytea PRIMARY KEY,
  -- Not a whole number: some counts decay.
  failures double precision NOT NULL,
  -- Further attempts are refused until then.
  blocked_until timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX throttles_by_expiry ON throttles (expires_at);

-- down

DROP TABLE throttles;
DROP TABLE known_networks;
DROP TABLE code_uses;
DROP TABLE mail_tokens;
DROP TABLE revoked_identities;
DROP TABLE identities;
DROP TABLE sessions;
DROP FUNCTION note_session_end;
DROP TABLE session_epoch;
