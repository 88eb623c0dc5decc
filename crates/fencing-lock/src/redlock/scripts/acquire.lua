-- KEYS: the lock, its fence counter, the mark that this try was given up. ARGV:
-- the owner, the TTL in milliseconds, the proposed token, the number of the
-- request. Answers 1 and the token of a grant, 3 if that is the proposed one, or 2 and
-- the milliseconds that a busy lock has left.
if redis.call('GET', KEYS[3]) then
    return redis.error_reply('GONE this try was given up before it came')
end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return {ARGV[4] * 8 + 2, redis.call('PTTL', KEYS[1])}
end
local counter = tonumber(redis.pcall('GET', KEYS[2]) or 0)
-- Lua counts in doubles, which are exact up to 2^53. A script that fails is
-- not rolled back, and a grant without a token must not stand.
if not (counter and counter >= 0 and counter < 9007199254740991) then
    redis.call('DEL', KEYS[1])
    return redis.error_reply('ERR ' .. KEYS[2] .. ' holds no counter that could grow')
end
if counter < tonumber(ARGV[3]) then
    redis.call('SET', KEYS[2], ARGV[3])
    return ARGV[4] * 8 + 3
end
counter = counter + 1
-- Lua by itself would write 1.7947872001235e+15.
redis.call('SET', KEYS[2], string.format('%.0f', counter))
return {ARGV[4] * 8 + 1, counter}
