-- KEYS: as in line.lua, and the mark that a try was given up, if one may come later
-- than this. ARGV: the owner, the floor, the channel of those to whom the client
-- passes on what the answer says, or nothing, and the number of the
-- request. Answers 1 if it held the lock, and with it who inherits, if the client
-- has to pass that on; else 0 or 2.
-- Gives the lock back and hands it to exactly one of those who wait; an owner
-- who only waits leaves the line. One script does both, because who gives up
-- does not know which of the two it is by then.
local owner = ARGV[1]
if KEYS[5] then
    -- No network holds a request back for longer than ten minutes.
    redis.call('SET', KEYS[5], '', 'PX', 600000)
end
local holder = redis.call('GET', KEYS[1])
if holder == owner then
    -- Deleted first, although the hand-over would write over it: those who
    -- watch the key see that this hold ended and the next one began.
    redis.call('DEL', KEYS[1])
    local heir, token, is_here = hand_over(ARGV[2], ARGV[3])
    if is_here then
        return {ARGV[4] * 8 + 1, heir, token}
    end
    return ARGV[4] * 8 + 1
end
if redis.call('HDEL', KEYS[4], owner) == 1 then
    redis.call('LREM', KEYS[3], 1, owner)
end
return ARGV[4] * 8 + (holder and 2 or 0) -- superseded, expired
