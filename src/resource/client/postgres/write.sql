-- One write: the check of the token, the new value and the row of the log are one statement.
--
-- $1 key, $2 value, $3 token, $4 its seq, $5 owner, $6 the position that was read,
-- $7 whether the fence is on, $8 whether to announce the row, $9 whether a write that is sent
-- again is told from one with an old token.
--
-- The lock on the row puts the writers of a key in an order. All that depends on the row before this
-- write stands in the SET, which sees the row as it is under that lock, and not as it was when
-- the statement began. The position is drawn there too, so positions follow the same order.
WITH decided AS (
    INSERT INTO fencepost_values AS held
        (key, value, position, token, token_seq, owner, decision, seen)
    SELECT $1, $2, first.next, $3, $4, $5, first.next, NULL
    FROM (
        -- A number would be lost for each write to a key that is there already.
        SELECT CASE WHEN NOT EXISTS (SELECT FROM fencepost_values WHERE key = $1)
            THEN nextval('fencepost_positions') ELSE 0 END AS next
    ) AS first
    ON CONFLICT (key) DO UPDATE SET
        (value, position, token, token_seq, owner, decision, seen) = (
            SELECT
                CASE WHEN applies THEN excluded.value ELSE held.value END,
                CASE WHEN applies THEN next ELSE held.position END,
                CASE WHEN applies AND higher THEN excluded.token ELSE held.token END,
                CASE WHEN applies AND higher THEN excluded.token_seq ELSE held.token_seq END,
                CASE WHEN applies AND higher THEN excluded.owner ELSE held.owner END,
                next,
                held.token
            FROM (
                SELECT
                    nextval('fencepost_positions') AS next,
                    NOT $7
                        OR held.token IS NULL
                        OR excluded.token > held.token
                        OR (
                            excluded.token = held.token
                            AND excluded.token_seq > held.token_seq
                            AND excluded.owner IS NOT DISTINCT FROM held.owner
                        ) AS applies,
                    excluded.token IS NOT NULL AND (
                        held.token IS NULL
                        OR (excluded.token, excluded.token_seq) >= (held.token, held.token_seq)
                    ) AS higher
            ) AS ruling
        )
    RETURNING
        position,
        decision,
        seen,
        CASE
            WHEN position = decision THEN 'accepted'
            WHEN $9 AND token = $3 AND token_seq = $4 AND owner IS NOT DISTINCT FROM $5 AND value = $2
                THEN 'duplicate'
            ELSE 'rejected'
        END AS outcome
), logged AS (
    INSERT INTO fencepost_log
        (position, at, key, outcome, token, token_seq, seen, owner, based_on, body, value)
    SELECT decision, clock_timestamp(), $1, outcome, $3, $4, seen, $5, $6,
        left(encode(sha256($2), 'hex'), 16),
        CASE WHEN outcome = 'accepted' THEN $2 END
    FROM decided
)
SELECT
    outcome,
    position,
    seen,
    CASE WHEN $8 THEN pg_notify('fencepost_log', decision::text)::text END
FROM decided
