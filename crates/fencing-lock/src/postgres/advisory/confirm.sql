-- $1: the owner. $2: whether the session has to be its own.
-- Answers whether this session still serves the owner. A session keeps its locks until it
-- ends.
SELECT NOT $2 OR coalesce(current_setting('fencing_lock.owner', true), '') = $1
