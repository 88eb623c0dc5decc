-- KEYS: the lock. ARGV: the owner.
-- GET and DEL from outside would delete the next holder's lock whenever the
-- TTL ran out between the two.
local holder = redis.call('GET', KEYS[1])
if not holder then
    return 'expired'
end
if holder ~= ARGV[1] then
    return 'superseded'
end
redis.call('DEL', KEYS[1])
return 'ours'
