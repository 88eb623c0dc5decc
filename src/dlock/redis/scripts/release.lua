-- KEYS: the lock. ARGV: the owner, and the channel on which waiters hear of it, if there is one.
-- GET and DEL from outside would delete the next holder's lock whenever the
-- TTL ran out between the two.
local holder = redis.call('GET', KEYS[1])
if not holder then
    return 0 -- expired
end
if holder ~= ARGV[1] then
    return -1 -- superseded
end
redis.call('DEL', KEYS[1])
if ARGV[2] then
    redis.call('PUBLISH', ARGV[2], 'freed')
end
return 1
