-- KEYS: the lock, its fence counter, the mark that this try was given up. ARGV: the owner,
-- the TTL in milliseconds, the floor, the number of the request.
-- Answers that it is granted, as token.lua says, or 2 and the milliseconds that the hold
-- of somebody else has left, which are negative if it has no end.
-- The grant and its token are one step: with two, an older token could be
-- handed out after a younger one.
if redis.call('GET', KEYS[3]) then
    return redis.error_reply('GONE this try was given up before it came')
end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    local token = next_token(KEYS[2], ARGV[3])
    if type(token) == 'table' then
        -- A script that fails is not rolled back, and a grant without a token must not stand.
        redis.call('DEL', KEYS[1])
        return token
    end
    return granted(token, ARGV[4])
end
return {ARGV[4] * 8 + 2, redis.call('PTTL', KEYS[1])}
