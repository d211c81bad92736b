-- Pictures, and finding people by name.

-- Both come with PostgreSQL (Debian's server package has them, elsewhere `postgresql-contrib`), and are trusted: whoever
-- owns the database may create them. Where one who may not runs this, they must be there beforehand.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;

-- One picture for each user. `users.picture_url` has its path, relative to where the service is found.
CREATE TABLE pictures (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  -- Its name in the URL. Random, and another for each picture: whoever has the URL sees it, and keeps it for ever.
  key text NOT NULL CONSTRAINT picture_key_taken UNIQUE,
  type text NOT NULL
    CONSTRAINT picture_type CHECK (type IN ('image/jpeg', 'image/png', 'image/webp', 'image/heic')),
  -- SHA-256 of the bytes: to put the same picture again changes nothing.
  digest bytea NOT NULL,
  bytes bytea NOT NULL CONSTRAINT picture_length CHECK (octet_length(bytes) BETWEEN 1 AND 2097152),
  created_at timestamptz NOT NULL DEFAULT now()
);
-- Pictures are compressed already; and a part of what is not compressed is read without the rest.
ALTER TABLE pictures ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- A name as people type it: without case, accents of any script, ligatures and the width of letters. Its dictionary is
-- named, without which unaccent() would not be immutable. Its body is parsed here and not when it is called, so that it
-- finds the extension on whatever search path.
CREATE FUNCTION folded(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN lower(unaccent(
  'unaccent'::regdictionary,
  -- Kana and Hangul, which are taken apart too, are put together again.
  normalize(regexp_replace(normalize(name, NFKD), U&'[\0300-\036F]', '', 'g'), NFKC)));

ALTER TABLE users
  ADD COLUMN search_name text NOT NULL GENERATED ALWAYS AS (folded(username || ' ' || display_name)) STORED;
-- GiST and not GIN: it hands out the names in the order of their likeness, so that a search ends with its page, however
-- many names have something in common with what was typed.
CREATE INDEX users_by_search_name ON users USING gist (search_name gist_trgm_ops (siglen = 64));

-- down
ALTER TABLE users DROP COLUMN search_name;
DROP FUNCTION folded;
UPDATE users SET picture_url = NULL WHERE picture_url IS NOT NULL;
DROP TABLE pictures;
-- The extensions stay: they may have been there before, or be somebody else's.
