-- Answers 1: released; 0: this session did not hold it; -1: the session serves another client.
-- An observer that looks has the release written down first, and nobody else pays for that.
BEGIN NOT ATOMIC
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
    IF COALESCE(@fencing_lock_owner, '') <> :owner THEN
        SELECT -1;
    ELSE
        SET @fencing_lock_owner = NULL;
        IF @fencing_lock_observed AND IS_USED_LOCK(:name) = CONNECTION_ID() THEN
            INSERT INTO fencing_lock_observed (at, lock_key, owner, session)
                VALUES (SYSDATE(6), :key, :owner, CONNECTION_ID());
        END IF;
        SELECT COALESCE(RELEASE_LOCK(:name), 0);
    END IF;
END
