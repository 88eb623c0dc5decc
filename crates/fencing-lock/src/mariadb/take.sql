-- Answers the token of a grant; 0 if somebody else holds the lock; -1 if this session serves
-- another client as well, so that the server could not tell the two apart; -2 if the server
-- is not the one that tokens are counted on; -3 if the table has two rows for one key.
-- Each statement is a transaction of its own, so nobody waits for the lock with a row or a
-- table locked, and the token is on disk when it is answered.
BEGIN NOT ATOMIC
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN
        SET @fencing_lock_owner = NULL;
        DO RELEASE_LOCK(:name);
        RESIGNAL;
    END;
    IF @fencing_lock_owner IS NOT NULL THEN
        SELECT -1;
    ELSEIF @@read_only THEN
        SELECT -2;
    ELSEIF COALESCE(GET_LOCK(:name, :wait), 0) = 0 THEN
        SELECT 0;
    ELSE
        SET @fencing_lock_owner = :owner;
        SET @fencing_lock_observed = NULL;
        INSERT INTO fencing_lock_tokens (lock_key, token, owner, session)
            SELECT :key, 1, :owner, CONNECTION_ID() FROM DUAL
            WHERE IS_USED_LOCK(:name) = CONNECTION_ID()
            ON DUPLICATE KEY UPDATE
                token = token + 1, owner = VALUES(owner), session = VALUES(session);
        -- Nobody else changes the row while the lock is held.
        SELECT CASE
            WHEN COUNT(*) > 1 THEN -3
            WHEN MAX(owner) = :owner AND MAX(session) = CONNECTION_ID() THEN MAX(token)
            ELSE -1
        END FROM fencing_lock_tokens WHERE lock_key = :key;
    END IF;
END
