-- Accounts in full: provider sign-in, confirmed addresses, throttling, deletion.
-- Older releases take it for granted that every account has an address and a password, and every event a creator:
-- breaking

ALTER TABLE users
  -- A provider need not tell an address, and who signs in there has no password.
  ALTER COLUMN email DROP NOT NULL,
  ALTER COLUMN password_hash DROP NOT NULL,
  -- When its owner proved to receive mail there.
  ADD COLUMN email_verified_at timestamptz;

-- Who somebody is at Apple or Google: by the provider's own id, which stays, and never by an address, which may pass
-- from one person to another.
CREATE TABLE identities (
  provider text NOT NULL CONSTRAINT identity_provider CHECK (provider IN ('apple', 'google')),
  subject text NOT NULL,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- What revokes Apple's grant when the account is deleted, sealed with a key that the database does not have.
  sealed_grant bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT identity_taken PRIMARY KEY (provider, subject),
  CONSTRAINT one_identity_per_provider UNIQUE (user_id, provider)
);

-- A session outlives its account, as an ended one, until its access tokens have expired.
ALTER TABLE sessions
  ALTER COLUMN user_id DROP NOT NULL,
  DROP CONSTRAINT sessions_user_id_fkey,
  ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users ON DELETE SET NULL,
  ADD CONSTRAINT nobodys_session_has_ended CHECK (user_id IS NOT NULL OR ended_at IS NOT NULL);
-- Those whose access tokens may still be valid are read several times a second.
CREATE INDEX ended_sessions_by_use ON sessions (rotated_at) WHERE ended_at IS NOT NULL;

-- Permissions that were mailed, each good for one use. Nothing secret is stored: what is mailed is a MAC over the row.
CREATE TABLE mail_tokens (
  id uuid PRIMARY KEY,
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  purpose text NOT NULL CONSTRAINT mail_token_purpose CHECK (purpose IN ('verify-email', 'reset-password')),
  -- To which it was mailed; with `verify-email` the account's address once it is shown.
  email text NOT NULL CONSTRAINT mail_token_email_length CHECK (char_length(email) <= 254),
  kid text NOT NULL,
  expires_at timestamptz NOT NULL
);
-- A newer one takes the place of the older.
CREATE UNIQUE INDEX one_mail_token_per_purpose ON mail_tokens (user_id, purpose);
CREATE INDEX mail_tokens_by_expiry ON mail_tokens (expires_at);

-- Failed attempts to prove something, and what is for the asking only so often: by login, by address and so on, each
-- key a digest.
CREATE TABLE throttles (
  key bytea PRIMARY KEY,
  -- Not whole: some counts fade.
  failures double precision NOT NULL,
  -- Until when further attempts are refused.
  blocked_until timestamptz NOT NULL,
  -- When the count is forgotten.
  expires_at timestamptz NOT NULL
);
CREATE INDEX throttles_by_expiry ON throttles (expires_at);

-- Names of deleted accounts, as digests, which nobody may take for a while: their friends would take the new owner for
-- the old.
CREATE TABLE retired_usernames (
  digest bytea PRIMARY KEY,
  until timestamptz NOT NULL
);

-- All that somebody sent and got, closed ones too: for the export, and so that a deletion finds them.
CREATE INDEX friend_requests_of_sender ON friend_requests (sender_id, id);
CREATE INDEX friend_requests_of_receiver ON friend_requests (receiver_id, id);

-- Events outlive their creator: guests keep them in their archive.
ALTER TABLE events
  ALTER COLUMN creator_id DROP NOT NULL,
  DROP CONSTRAINT events_creator_id_fkey,
  ADD CONSTRAINT events_creator_id_fkey FOREIGN KEY (creator_id) REFERENCES users ON DELETE SET NULL;

-- Who deletes their account is about many rows of the queue that are for others.
CREATE INDEX notification_queue_by_subject ON notification_queue (subject_id);
CREATE INDEX notification_queue_by_person ON notification_queue ((payload->>'userId'))
  WHERE payload->>'userId' IS NOT NULL;

-- down
-- Where there are events without a creator, or accounts without an address or a password, this fails, and nothing is
-- undone: an older release cannot keep them, and they are not for a migration to delete.
DROP INDEX notification_queue_by_person;
DROP INDEX notification_queue_by_subject;
ALTER TABLE events
  ALTER COLUMN creator_id SET NOT NULL,
  DROP CONSTRAINT events_creator_id_fkey,
  ADD CONSTRAINT events_creator_id_fkey FOREIGN KEY (creator_id) REFERENCES users ON DELETE CASCADE;
DROP INDEX friend_requests_of_receiver;
DROP INDEX friend_requests_of_sender;
DROP TABLE retired_usernames;
DROP TABLE throttles;
DROP TABLE mail_tokens;
DROP INDEX ended_sessions_by_use;
DELETE FROM sessions WHERE user_id IS NULL;
ALTER TABLE sessions
  ALTER COLUMN user_id SET NOT NULL,
  DROP CONSTRAINT nobodys_session_has_ended,
  DROP CONSTRAINT sessions_user_id_fkey,
  ADD CONSTRAINT sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE;
DROP TABLE identities;
ALTER TABLE users
  DROP COLUMN email_verified_at,
  ALTER COLUMN email SET NOT NULL,
  ALTER COLUMN password_hash SET NOT NULL;
