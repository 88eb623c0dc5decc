-- KEYS: the lock, and the mark that a try was given up, if one may come later than this.
-- ARGV: the owner, the channel on which waiters hear of it, or nothing, and the number of the request.
-- GET and DEL from outside would delete the next holder's lock whenever the
-- TTL ran out between the two.
if KEYS[2] then
    -- No network holds a request back for longer than ten minutes.
    redis.call('SET', KEYS[2], '', 'PX', 600000)
end
local holder = redis.call('GET', KEYS[1])
if not holder then
    return ARGV[3] * 8 -- expired
end
if holder ~= ARGV[1] then
    return ARGV[3] * 8 + 2 -- superseded
end
redis.call('DEL', KEYS[1])
if ARGV[2] ~= '' then
    redis.call('PUBLISH', ARGV[2], 'freed')
end
return ARGV[3] * 8 + 1
