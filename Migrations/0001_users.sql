-- Accounts: users, and the search for them.

-- Both extensions come with PostgreSQL (on Debian in the server package, elsewhere in `postgresql-contrib`). Both are
-- trusted: the owner of the database may create them. A role without that right needs them to exist beforehand.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;

-- A time-ordered UUID (RFC 9562, version 7): new rows go to the right edge of their index.
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
  SELECT encode(
    set_bit(set_bit(
      overlay(
        uuid_send(gen_random_uuid())
        PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        FROM 1 FOR 6),
      52, 1), 53, 1),
    'hex')::uuid
$$;

-- Folds what must be unique: ASCII letters become lowercase, and nothing else changes. Any other rule depends on the
-- locale of the database, or makes different mailboxes equal.
CREATE FUNCTION ascii_folded(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');

-- The rules for the letters of names: ICU's, or those that PostgreSQL has itself since version 17, for a server without
-- ICU. The locale of the database changes neither.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN
    CREATE COLLATION folding FROM "und-x-icu";
  ELSE
    CREATE COLLATION folding (provider = builtin, locale = 'C.UTF-8');
  END IF;
END
$$;

-- Folds a name for searches: ignores case, accents of any script, ligatures and the width of letters. unaccent() is
-- immutable only if its dictionary is named. The collation is named because that of the database may fold `I` into a
-- dotless i, or no letters but those of ASCII. ICU writes the last sigma of a word differently, but a
-- search may be the beginning of a longer word, so both are one letter. The body is parsed when the function is created,
-- not when it is called, so that it finds the extension on any search path.
CREATE FUNCTION folded(name text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN translate(lower(unaccent(
  'unaccent'::regdictionary,
  -- NFKC composes kana and Hangul again, which NFKD decomposes.
  normalize(regexp_replace(normalize(name, NFKD), U&'[\0300-\036F]', '', 'g'), NFKC)) COLLATE folding), 'ς', 'σ');

-- The words of a folded name. Spaces and marks are between them; combining vowels are not.
CREATE FUNCTION name_words(name text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5000
RETURN ARRAY(
  SELECT DISTINCT left(word, 16)
  FROM regexp_split_to_table(name, '[[:space:][:punct:]$+<=>^`|~]+' COLLATE folding) AS word
  WHERE word <> '');

-- The keys by which searches find a name: of each word its beginnings, and all that is left of it without one letter.
-- Two words that differ by one wrong, missing, added or swapped letter have such a key in common. They take a tenth of a
-- millisecond. The planner must know that, or it makes the keys of all users.
CREATE FUNCTION name_keys(name text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000
RETURN ARRAY(
  SELECT DISTINCT key
  FROM unnest(name_words(name)) AS word
  CROSS JOIN LATERAL generate_series(1, char_length(word)) AS place
  CROSS JOIN LATERAL (VALUES (left(word, place)), (left(word, place - 1) || substr(word, place + 1))) AS each (key)
  WHERE key <> '');

CREATE TABLE users (
  id uuid PRIMARY KEY,
  -- Shown as the user wrote it, unique without regard to case. In the collation "C", a range of letters has only ASCII.
  username text NOT NULL CONSTRAINT username_form CHECK (username COLLATE "C" ~ '^[A-Za-z0-9._-]{3,30}$'),
  username_key text COLLATE "C" NOT NULL GENERATED ALWAYS AS (ascii_folded(username)) STORED,
  -- In canonical form, as `EmailAddress` makes it. NULL if the provider that the user signed up with does not share an
  -- address.
  email text CONSTRAINT email_length CHECK (char_length(email) <= 254)
    CONSTRAINT email_domain CHECK (email COLLATE "C" ~ '@[a-z0-9-]+([.][a-z0-9-]+)+$'),
  -- Two addresses with one key are one mailbox.
  email_key text COLLATE "C" GENERATED ALWAYS AS (ascii_folded(email)) STORED,
  -- When the user verified the address.
  email_verified_at timestamptz,
  -- Whether the account was registered with this address. Until something proves who owns the account, a reader of the
  -- address's mail may claim it.
  is_first_email boolean NOT NULL DEFAULT false,
  display_name text NOT NULL CONSTRAINT display_name_length CHECK (char_length(display_name) BETWEEN 1 AND 100),
  bio text CONSTRAINT bio_length CHECK (char_length(bio) <= 500),
  -- The path of the picture, relative to the service's public URL.
  picture_url text,
  -- Includes the algorithm's parameters, so that they can be raised at the next login. NULL: no password.
  password_hash text,
  -- Who may send the user friend requests, and who finds the user in searches and recommendations. Friends of friends are
  -- users with a friend in common. Friends find each other in any case.
  requests_from text NOT NULL DEFAULT 'everyone'
    CONSTRAINT requests_from CHECK (requests_from IN ('everyone', 'friends-of-friends', 'no-one')),
  findable_by text NOT NULL DEFAULT 'everyone'
    CONSTRAINT findable_by CHECK (findable_by IN ('everyone', 'friends-of-friends', 'no-one')),
  search_name text NOT NULL GENERATED ALWAYS AS (folded(username || ' ' || display_name)) STORED,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX username_taken ON users (username_key);
CREATE UNIQUE INDEX email_taken ON users (email_key);
-- GIN, not GiST with trigrams: a search that matches no one read most of that index, and took as long as there were
-- users. Without a list of pending entries, which each search would read. Users whom no stranger finds are not in it.
--
-- An index for each audience: a search takes some users of each. With one index, it would look for those whom only
-- friends of friends find among all who have the name.
CREATE INDEX users_by_name_key ON users USING gin (name_keys(search_name)) WITH (fastupdate = off)
  WHERE findable_by = 'everyone';
CREATE INDEX users_by_name_key_for_friends_of_friends ON users USING gin (name_keys(search_name))
  WITH (fastupdate = off) WHERE findable_by = 'friends-of-friends';

-- At most one picture for each user.
CREATE TABLE pictures (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  -- Its name in the URL: random, and new for each picture. Anyone with the URL can see the picture.
  key text NOT NULL CONSTRAINT picture_key_taken UNIQUE,
  -- SHA-256 of the uploaded file, which is not kept: uploading the same file again changes nothing.
  digest bytea NOT NULL,
  -- Made from it by the decoder, with at most this many pixels a side.
  jpeg_192 bytea NOT NULL CONSTRAINT picture_small_length CHECK (octet_length(jpeg_192) BETWEEN 1 AND 1048576),
  jpeg_768 bytea NOT NULL CONSTRAINT picture_large_length CHECK (octet_length(jpeg_768) BETWEEN 1 AND 1048576),
  jpeg_2048 bytea NOT NULL CONSTRAINT picture_full_length CHECK (octet_length(jpeg_2048) BETWEEN 1 AND 4194304),
  created_at timestamptz NOT NULL DEFAULT now()
);
-- Pictures are compressed already.
ALTER TABLE pictures
  ALTER COLUMN jpeg_192 SET STORAGE EXTERNAL,
  ALTER COLUMN jpeg_768 SET STORAGE EXTERNAL,
  ALTER COLUMN jpeg_2048 SET STORAGE EXTERNAL;

-- Old usernames, as digests. They are reserved for a while, so that no other user is mistaken for the former owner.
CREATE TABLE retired_usernames (
  digest bytea PRIMARY KEY,
  -- The former owner, who may take the name back. NULL once the account is deleted.
  user_id uuid REFERENCES users ON DELETE SET NULL,
  until timestamptz NOT NULL
);
CREATE INDEX retired_usernames_of_user ON retired_usernames (user_id, until);

-- down

DROP TABLE retired_usernames;
DROP TABLE pictures;
DROP TABLE users;
DROP FUNCTION name_keys;
DROP FUNCTION name_words;
DROP FUNCTION folded;
DROP COLLATION folding;
DROP FUNCTION ascii_folded;
DROP FUNCTION uuid_v7;
-- The extensions stay: something else may use them.
