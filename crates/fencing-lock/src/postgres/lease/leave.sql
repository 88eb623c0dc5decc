-- $1: the key. $2: the owner.
-- Gives back what a try was granted, and marks the try as given up, for one that comes
-- later than this. No network holds a request back for longer than ten minutes, so older
-- marks go.
WITH freed AS (
    INSERT INTO fencing_locks AS lock (key, token, owner, expires_at, gone)
    VALUES ($1, 0, NULL, clock_timestamp(), jsonb_build_object($2, clock_timestamp()))
    ON CONFLICT (key) DO UPDATE
    SET owner = nullif(lock.owner, $2),
        gone = excluded.gone || (
            SELECT coalesce(jsonb_object_agg(mark.owner, mark.at), '{}')
            FROM jsonb_each_text(lock.gone) AS mark (owner, at)
            WHERE mark.at::timestamptz > clock_timestamp() - interval '10 minutes'
        )
    RETURNING key, owner
)
SELECT pg_notify('fencing_lock_freed', key) FROM freed WHERE owner IS NULL
