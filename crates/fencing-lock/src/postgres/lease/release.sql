-- $1: the key. $2: the owner.
-- Answers 1: released; 0: it had expired; -1: somebody else holds it. Waiters hear of it
-- when it is committed.
WITH freed AS (
    UPDATE fencing_locks SET owner = NULL
    WHERE key = $1 AND owner = $2
    RETURNING key, expires_at > clock_timestamp() AS in_time
),
told AS MATERIALIZED (SELECT pg_notify('fencing_lock_freed', key) FROM freed)
SELECT CASE
    WHEN (SELECT in_time FROM freed) THEN 1
    WHEN EXISTS (
        SELECT FROM fencing_locks
        WHERE key = $1 AND owner <> $2 AND expires_at > clock_timestamp()
    ) THEN -1
    ELSE 0
END, (SELECT count(*) FROM told)
