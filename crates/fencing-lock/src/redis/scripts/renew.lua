-- KEYS: the lock. ARGV: the owner, the TTL in milliseconds.
-- A lock that ran out is never re-created: somebody may have held it since.
local holder = redis.call('GET', KEYS[1])
if not holder then
    return 0 -- expired
end
if holder ~= ARGV[1] then
    return -1 -- superseded
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
