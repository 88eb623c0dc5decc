-- Answers whether this session still serves the owner, and holds its lock.
SELECT COALESCE(@fencing_lock_owner = :owner AND IS_USED_LOCK(:name) = CONNECTION_ID(), 0)
