-- The resource as tables: the value of each key, and every decision about a write.
CREATE SEQUENCE IF NOT EXISTS fencepost_positions;

CREATE TABLE IF NOT EXISTS fencepost_values (
    key text PRIMARY KEY,
    value bytea NOT NULL,
    -- The position of the write that made this value.
    position bigint NOT NULL,
    -- The highest token that was accepted, and who wrote with it.
    token bigint,
    token_seq bigint NOT NULL,
    owner text,
    -- The latest decision about this key, and the highest token before it.
    decision bigint NOT NULL,
    seen bigint
);

-- The tokens of those who keep them apart from the values, to show why not to.
CREATE TABLE IF NOT EXISTS fencepost_fences (key text PRIMARY KEY, fence bigint NOT NULL);

CREATE TABLE IF NOT EXISTS fencepost_log (
    position bigint PRIMARY KEY,
    at timestamptz NOT NULL,
    key text NOT NULL,
    outcome text NOT NULL,
    token bigint,
    token_seq bigint NOT NULL,
    seen bigint,
    owner text,
    based_on bigint,
    body text NOT NULL,
    value bytea
);
