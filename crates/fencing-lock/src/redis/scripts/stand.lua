-- KEYS: as in line.lua, the mark that this try was given up, and the mark that
-- the line was looked through a moment ago.
-- ARGV: the owner, its TTL in milliseconds, the floor, the channel on which it
-- listens, how many may wait, and `again` from who asked before.
-- Asks for the lock and otherwise stands in its line, at the end; who stands
-- there already keeps its place and counts as alive for another TTL. Answers
-- what became of it in three numbers; the client has the words.
local GRANTED, HANDED, WAITING, FULL = 1, 2, 3, 4
local owner, ttl_ms, floor = ARGV[1], ARGV[2], ARGV[3]
if redis.call('EXISTS', KEYS[5]) == 1 then
    return redis.error_reply('GONE this try was given up before it came')
end
local holder = redis.call('GET', KEYS[1])
if holder == owner then
    -- Handed over meanwhile: nobody else was granted anything since, so the
    -- counter still stands where it did.
    return {HANDED, tonumber(redis.call('GET', KEYS[2])), 0}
end
if not holder then
    -- The last hold ran out, and nobody but us will hand the lock on.
    local heir, token = hand_over(floor, owner, ttl_ms, ARGV[6] == 'again')
    if heir == owner then
        return {GRANTED, token, 0}
    end
end
local now = now_ms()
local known = ttl_ms .. ' ' .. string.format('%.0f', now + ttl_ms) .. ' ' .. ARGV[4]
local is_new = redis.call('HSET', KEYS[4], owner, known) == 1
if ARGV[6] == 'again' and (is_new or redis.call('LLEN', KEYS[3]) ~= redis.call('HLEN', KEYS[4])) then
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
            if alive(other, now) then
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
        return {FULL, length - 1, redis.call('PTTL', KEYS[1])}
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
return {WAITING, tonumber(redis.call('GET', KEYS[2])) or 0, redis.call('PTTL', KEYS[1])}
