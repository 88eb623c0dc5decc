-- Has every later session report the advisory locks that it is granted and releases.
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET fencing_lock.observed = ''on''', current_database());
END $$;
