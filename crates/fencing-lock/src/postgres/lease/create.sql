-- One row for each key that was ever locked. It stays when the lock is free, because the
-- token has to go on from where it was.
CREATE TABLE IF NOT EXISTS fencing_locks (
    key text COLLATE "C" PRIMARY KEY,
    token bigint NOT NULL,
    -- Nobody holds the lock where this is null, or where `expires_at` has passed.
    owner text,
    expires_at timestamptz NOT NULL,
    -- The tries that were given up and may still come: for each owner, when that was.
    gone jsonb NOT NULL DEFAULT '{}'
)
