-- breaking
-- (A release before knows of no blocks, and brings people together across them.)

-- Blocks: two people one of whom does not want to meet the other are hidden from each other.

CREATE TABLE blocks (
  blocker_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  blocked_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  -- Each of two may have blocked the other, neither knowing of it, and takes back only their own.
  CONSTRAINT one_block_in_each_direction PRIMARY KEY (blocker_id, blocked_id),
  CONSTRAINT no_block_of_oneself CHECK (blocker_id <> blocked_id)
);
-- Every read asks in both directions.
CREATE INDEX blocks_reversed ON blocks (blocked_id, blocker_id);

-- Whom a user does not see, and is not seen by: from which side the block comes makes no difference.
CREATE VIEW hidden AS
  SELECT blocker_id AS user_id, blocked_id AS hidden_id FROM blocks
  UNION ALL
  SELECT blocked_id AS user_id, blocker_id AS hidden_id FROM blocks;

-- What GET /blocks shows. Who had blocked the other before does not exist for them, there neither.
CREATE VIEW shown_blocks AS
  SELECT b.blocker_id, b.blocked_id, b.created_at
  FROM blocks AS b
  WHERE NOT EXISTS (
    SELECT 1 FROM blocks AS back
    WHERE back.blocker_id = b.blocked_id AND back.blocked_id = b.blocker_id AND back.created_at < b.created_at
  );

-- down
DROP VIEW shown_blocks;
DROP VIEW hidden;
DROP TABLE blocks;
