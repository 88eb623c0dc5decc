-- $1: the key. $2: the owner. $3: the TTL in milliseconds.
-- Answers the token of a grant; or null, and for how many milliseconds the present hold
-- lasts; or nothing, if the hold began a moment ago. The first condition reads only, so a try on a held lock writes nothing. It may
-- read an old row; the second one sees the newest, which nobody else can change meanwhile.
-- So does the mark of a try that was given up: in another table, it could be missed.
WITH granted AS (
    INSERT INTO fencing_locks AS lock (key, token, owner, expires_at)
    SELECT $1, 1, $2, clock_timestamp() + $3 * interval '1 millisecond'
    WHERE NOT EXISTS (
        SELECT FROM fencing_locks
        WHERE key = $1 AND owner IS NOT NULL AND expires_at > clock_timestamp()
    )
    ON CONFLICT (key) DO UPDATE
    SET token = lock.token + 1,
        owner = excluded.owner,
        expires_at = clock_timestamp() + $3 * interval '1 millisecond'
    WHERE (lock.owner IS NULL OR lock.expires_at <= clock_timestamp())
      AND NOT lock.gone ? $2
    RETURNING token
)
SELECT token, NULL::bigint FROM granted
UNION ALL
SELECT NULL, ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint
FROM fencing_locks
WHERE key = $1 AND owner IS NOT NULL AND NOT EXISTS (SELECT FROM granted)
