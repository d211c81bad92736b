-- Logging in: sessions, provider identities, mailed tokens, and counts of failed attempts.

-- One row for each logged-in device, however often its tokens rotate. Nothing secret is stored: a refresh token is a
-- MAC over (id, counter, branch, kid).
CREATE TABLE sessions (
  id uuid PRIMARY KEY,
  -- NULL once the account is deleted: the ended session stays until its access tokens have expired.
  user_id uuid REFERENCES users ON DELETE SET NULL,
  device text CONSTRAINT device_length CHECK (char_length(device) <= 100),
  counter bigint NOT NULL DEFAULT 0,
  branch integer NOT NULL DEFAULT 0,
  -- The branch of the token that the current one replaced. Only that token may be shown again after a lost response.
  parent_branch integer NOT NULL DEFAULT 0,
  rotated_at timestamptz NOT NULL,
  kid text NOT NULL,
  created_at timestamptz NOT NULL,
  ended_at timestamptz,
  CONSTRAINT session_without_user_has_ended CHECK (user_id IS NOT NULL OR ended_at IS NOT NULL)
);
CREATE INDEX sessions_of_user ON sessions (user_id);
CREATE INDEX sessions_by_end ON sessions (ended_at) WHERE ended_at IS NOT NULL;
-- Sessions whose access tokens may still be valid: every process reads them several times a second.
CREATE INDEX ended_sessions_by_use ON sessions (rotated_at) WHERE ended_at IS NOT NULL;

-- Accounts at Apple and Google, by the provider's own permanent id, never by an address: addresses change hands.
CREATE TABLE identities (
  provider text NOT NULL CONSTRAINT identity_provider CHECK (provider IN ('apple', 'google')),
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- Revokes Apple's grant when the account is deleted. Sealed with a key that the database does not have.
  sealed_grant bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT identity_taken PRIMARY KEY (provider, subject),
  CONSTRAINT one_identity_per_provider UNIQUE (user_id, provider)
);

-- Mailed tokens, each good for one use. Nothing secret is stored: the mail carries a MAC over the row.
CREATE TABLE mail_tokens (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  purpose text NOT NULL CONSTRAINT mail_token_purpose CHECK (purpose IN ('verify-email', 'reset-password')),
  -- The address that it was mailed to. Using a `verify-email` token makes it the account's address.
  email text NOT NULL CONSTRAINT mail_token_email_length CHECK (char_length(email) <= 254),
  kid text NOT NULL,
  expires_at timestamptz NOT NULL
);
-- A newer token replaces the older one.
CREATE UNIQUE INDEX one_mail_token_per_purpose ON mail_tokens (user_id, purpose);
CREATE INDEX mail_tokens_by_expiry ON mail_tokens (expires_at);

-- Counts of failed attempts and of requests that are limited: by login, by address and so on. Each key is a digest.
CREATE TABLE throttles (
  key bytea PRIMARY KEY,
  -- Not a whole number: some counts decay.
  failures double precision NOT NULL,
  -- Until when further attempts are refused.
  blocked_until timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX throttles_by_expiry ON throttles (expires_at);

-- down

DROP TABLE throttles;
DROP TABLE mail_tokens;
DROP TABLE identities;
DROP TABLE sessions;
