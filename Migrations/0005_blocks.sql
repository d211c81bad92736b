-- Blocks: a block hides two people from each other.

CREATE TABLE blocks (
  blocker_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  blocked_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  created_at timestamptz NOT NULL,
  -- Two people may block each other. Neither knows of the other's block, and each can take back only their own.
  CONSTRAINT one_block_in_each_direction PRIMARY KEY (blocker_id, blocked_id),
  CONSTRAINT no_block_of_oneself CHECK (blocker_id <> blocked_id)
);
-- Every read asks in both directions.
CREATE INDEX blocks_reversed ON blocks (blocked_id, blocker_id);

-- Users who cannot see each other, from both sides: the direction of the block makes no difference.
CREATE VIEW hidden AS
  SELECT blocker_id AS user_id, blocked_id AS hidden_id FROM blocks
  UNION ALL
  SELECT blocked_id AS user_id, blocker_id AS hidden_id FROM blocks;

-- What GET /blocks shows: a block is absent while an older block in the other direction hides its target.
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
