-- Rows to lock instead of advisory locks, on an engine that has none: see `Turns`. No program writes them.

CREATE TABLE turns (
  slot integer PRIMARY KEY
);
INSERT INTO turns (slot) SELECT generate_series(0, 1023);

-- down

DROP TABLE turns;
