CREATE SEQUENCE IF NOT EXISTS fencing_lock_tokens
