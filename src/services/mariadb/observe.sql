-- Where grants and releases are written down, in the order in which they happened: in memory,
-- so that nobody waits for a disk. Who reads a row removes it.
CREATE TABLE IF NOT EXISTS fencing_lock_observed (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(6) NOT NULL,
    lock_key VARBINARY(256) NOT NULL,
    owner VARBINARY(64) NOT NULL,
    -- The token of a grant; a release has none.
    token BIGINT UNSIGNED,
    session BIGINT UNSIGNED NOT NULL
) ENGINE = MEMORY
