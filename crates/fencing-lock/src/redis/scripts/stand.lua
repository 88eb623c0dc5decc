-- KEYS: as in line.lua, the mark that this try was given up, and the mark that
-- the line was looked through a moment ago.
-- ARGV: the owner, its TTL in milliseconds, the floor, the channel on which it
-- listens, how many may wait, `again` from who asked before, and the number of
-- the request.
-- Asks for the lock and otherwise stands in its line, at the end; who stands
-- there already keeps its place and counts as alive for another TTL. Answers
-- that it is granted, as token.lua says, or what else became of it in two or three
-- numbers; the client has the words.
local HANDED, WAITING, FULL = 2, 3, 4
local head = ARGV[7] * 8
local owner, ttl_ms, floor, again = ARGV[1], ARGV[2], ARGV[3], ARGV[6] == 'again'
local now = redis.call('MGET', KEYS[1], KEYS[2], KEYS[5])
if now[3] then
    return redis.error_reply('GONE this try was given up before it came')
end
local holder, counter = now[1], tonumber(now[2]) or 0
if holder == owner then
    -- Handed over meanwhile: nobody else was granted anything since, so the
    -- counter still stands where it did.
    return {head + HANDED, counter}
end
if not holder then
    -- The last hold ran out, and nobody but us will hand the lock on.
    local heir, token = hand_over(floor, nil, owner)
    if not heir then
        token = token or next_token(KEYS[2], floor)
        if type(token) == 'table' then
            return token
        end
        if again then
            redis.call('HDEL', KEYS[4], owner)
        end
        redis.call('SET', KEYS[1], owner, 'PX', ttl_ms)
        return granted(token, ARGV[7])
    end
    counter = token
end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local known = ttl_ms .. ' ' .. string.format('%.0f', now_ms + ttl_ms) .. ' ' .. ARGV[4]
local is_new = redis.call('HSET', KEYS[4], owner, known) == 1
if again and (is_new or redis.call('LLEN', KEYS[3]) ~= redis.call('HLEN', KEYS[4])) then
    -- A server that is short of memory can evict one of the two keys alone.
    is_new = not redis.call('LPOS', KEYS[3], owner)
end
if is_new then
    local length, max = redis.call('RPUSH', KEYS[3], owner), tonumber(ARGV[5])
    -- The dead stay in the line until it is their turn, and must not fill it. A
    -- long line is not looked through more than once in a second.
    if length > max and max > 0 and redis.call('SET', KEYS[6], '', 'NX', 'PX', 1000) then
        local all, left_ms = redis.call('LRANGE', KEYS[3], 0, -1), redis.call('PTTL', KEYS[3])
        redis.call('DEL', KEYS[3])
        for _, other in ipairs(all) do
            local until_ms = string.match(redis.call('HGET', KEYS[4], other) or '', '^%d+ (%d+) ')
            if until_ms and tonumber(until_ms) > now_ms then
                length = redis.call('RPUSH', KEYS[3], other)
            else
                redis.call('HDEL', KEYS[4], other)
            end
        end
        if left_ms > 0 then
            redis.call('PEXPIRE', KEYS[3], left_ms)
        end
    end
    if length > max then
        redis.call('RPOP', KEYS[3])
        redis.call('HDEL', KEYS[4], owner)
        return {head + FULL, length - 1, redis.call('PTTL', KEYS[1])}
    end
end
-- A line whose waiters all died would stay for good. Waiters confirm at half
-- their TTL, so this is long enough, and it is not written each time. Both keys
-- end in the same millisecond: who is only in one of them would be in neither.
local kept_ms = 2 * ttl_ms + 1000
if redis.call('PTTL', KEYS[3]) < kept_ms - ttl_ms / 2 then
    redis.call('PEXPIRE', KEYS[3], kept_ms)
    redis.call('PEXPIRE', KEYS[4], kept_ms)
end
return {head + WAITING, counter, redis.call('PTTL', KEYS[1])}
