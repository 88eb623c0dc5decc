CREATE TABLE IF NOT EXISTS fencing_lock_tokens (
    lock_key VARBINARY(256) NOT NULL PRIMARY KEY,
    -- Only grows. The row stays when the lock is free.
    token BIGINT UNSIGNED NOT NULL,
    -- Who was granted it, and in which session.
    owner VARBINARY(64) NOT NULL,
    session BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB
