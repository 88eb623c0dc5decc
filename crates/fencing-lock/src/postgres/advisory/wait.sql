-- As try.sql, and waits until the lock is free. $5: for how many milliseconds at most, as
-- text; then the statement fails.
WITH own AS MATERIALIZED (
    SELECT set_config('lock_timeout', $5, true)
    WHERE NOT ($3 AND coalesce(current_setting('fencing_lock.owner', true), '') <> '')
),
held AS MATERIALIZED (SELECT pg_advisory_lock($1) FROM own),
granted AS MATERIALIZED (
    SELECT CASE
        WHEN set_config('fencing_lock.owner', $2, false) IS NULL THEN 0
        ELSE nextval('fencing_lock_tokens')
    END AS token
    FROM held
)
SELECT token, pg_logical_emit_message(true, 'fencing_lock', ''), CASE
    WHEN current_setting('fencing_lock.observed', true) = 'on'
    THEN pg_notify('fencing_lock_observed', json_build_object(
        'event', 'granted', 'key', $4, 'owner', $2, 'token', token)::text)
END
FROM granted
