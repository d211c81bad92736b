-- Blocks: two people one of whom does not want to meet the other are hidden from each other.

CREATE TABLE blocks (
  blocker_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  blocked_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz NOT NULL DEFAULT now(),
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

-- down
DROP VIEW hidden;
DROP TABLE blocks;
