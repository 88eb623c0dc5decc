-- KEYS: the lock. ARGV: the owner, the TTL in milliseconds, the number of the request.
-- A lock that ran out is never re-created: somebody may have held it since.
local holder = redis.call('GET', KEYS[1])
if not holder then
    return ARGV[3] * 8 -- expired
end
if holder ~= ARGV[1] then
    return ARGV[3] * 8 + 2 -- superseded
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return ARGV[3] * 8 + 1
