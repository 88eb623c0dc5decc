-- $1: the number of the lock. $2: the owner. $3: whether the session has to be its own.
-- $4: the key, for observers.
-- Answers the token of a grant; 0 if somebody else holds the lock; -1 if this session serves
-- another client as well, so that the server could not tell the two apart. The parts of CASE
-- are evaluated one after the other, so the token is drawn when the lock is held.
-- The message goes to nobody but the log: with it, the server has everything on disk up to
-- here before it answers. A sequence by itself is logged once for 32 numbers, and who is
-- given one of them may be answered before that: after a crash, the numbers come again.
SELECT token, CASE
    WHEN token > 0 THEN pg_logical_emit_message(true, 'fencing_lock', '')
END, CASE
    WHEN token > 0 AND current_setting('fencing_lock.observed', true) = 'on'
    THEN pg_notify('fencing_lock_observed', json_build_object(
        'event', 'granted', 'key', $4, 'owner', $2, 'token', token)::text)
END
FROM (
    SELECT CASE
        WHEN $3 AND coalesce(current_setting('fencing_lock.owner', true), '') <> '' THEN -1
        WHEN NOT pg_try_advisory_lock($1) THEN 0
        WHEN set_config('fencing_lock.owner', $2, false) IS NULL THEN 0
        ELSE nextval('fencing_lock_tokens')
    END AS token
    OFFSET 0
) AS tried
