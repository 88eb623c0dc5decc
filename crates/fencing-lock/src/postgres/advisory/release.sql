-- $1: the number of the lock. $2: the owner. $3: whether the session has to be its own.
-- $4: the key, for observers.
-- Answers 1: released; 0: this session did not hold it; -1: the session serves another
-- client.
SELECT released, CASE
    WHEN released = 1 AND current_setting('fencing_lock.observed', true) = 'on'
    THEN pg_notify('fencing_lock_observed', json_build_object(
        'event', 'released', 'key', $4, 'owner', $2)::text)
END
FROM (
    SELECT CASE
        WHEN $3 AND coalesce(current_setting('fencing_lock.owner', true), '') <> $2 THEN -1
        WHEN NOT pg_advisory_unlock($1) THEN 0
        WHEN set_config('fencing_lock.owner', '', false) IS NULL THEN 0
        ELSE 1
    END AS released
    OFFSET 0
) AS done
