-- Reports every change of a lease, in the order in which they are committed.
CREATE OR REPLACE FUNCTION fencepost_observed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('fencepost_observed', json_build_object(
        'key', coalesce(NEW.key, OLD.key),
        'owner', NEW.owner,
        'token', NEW.token,
        'owner_before', OLD.owner,
        'token_before', OLD.token,
        'had_expired', OLD.expires_at <= clock_timestamp(),
        'renewed', NEW.expires_at <> OLD.expires_at
    )::text);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER fencepost_observed AFTER INSERT OR UPDATE OR DELETE ON fencing_locks
    FOR EACH ROW EXECUTE FUNCTION fencepost_observed();
LISTEN fencepost_observed;
LISTEN fencing_lock_observed
