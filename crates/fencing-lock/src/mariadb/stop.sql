-- Ends a session, if it is still in the statement of this owner: after a restart of the
-- server its number may be somebody else's.
BEGIN NOT ATOMIC
    IF EXISTS (
        SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = :session AND LOCATE(:owner, INFO)
    ) THEN
        KILL CONNECTION :session;
    END IF;
END
