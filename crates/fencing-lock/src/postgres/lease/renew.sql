-- $1: the key. $2: the owner. $3: the TTL in milliseconds.
-- Answers 1: renewed; 0: expired; -1: somebody else holds it. A lock that expired is never
-- re-created, also if nobody held it since.
WITH renewed AS (
    UPDATE fencing_locks
    SET expires_at = clock_timestamp() + $3 * interval '1 millisecond'
    WHERE key = $1 AND owner = $2 AND expires_at > clock_timestamp()
    RETURNING key
)
SELECT CASE
    WHEN EXISTS (SELECT FROM renewed) THEN 1
    WHEN EXISTS (
        SELECT FROM fencing_locks
        WHERE key = $1 AND owner <> $2 AND expires_at > clock_timestamp()
    ) THEN -1
    ELSE 0
END
