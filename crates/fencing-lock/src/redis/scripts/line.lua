-- KEYS: the lock, its fence counter, the line, and what is known of those who
-- stand in it: for each owner its TTL, until when it counts as alive (both in
-- milliseconds, by this server's clock), and the channel on which it listens.

-- Gives the lock, which nobody holds, to the first in the line who is alive, and
-- stops at the one who asks. Says to whom and with which token, and whether the
-- caller has to pass it on: whoever listens on `own_channel` is not told by a
-- message, but by the answer to this very request. Who did not confirm its wait
-- for a TTL could not use the lock, because its own deadline counts from its last
-- confirmation.
local function hand_over(floor, own_channel, asker)
    local token, now_ms
    local owner = redis.call('LPOP', KEYS[3])
    while owner and owner ~= asker do
        if not now_ms then
            local time = redis.call('TIME')
            now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
        end
        local known = redis.call('HGET', KEYS[4], owner) or ''
        local ttl_ms, until_ms, channel = string.match(known, '^(%d+) (%d+) (.+)$')
        redis.call('HDEL', KEYS[4], owner)
        if ttl_ms and tonumber(until_ms) > now_ms then
            token = token or next_token(KEYS[2], floor)
            if type(token) == 'table' then
                -- Before anybody holds anything: a grant without a token must not stand.
                error(token.err)
            end
            local is_here = channel == own_channel
            -- Where nobody hears of the grant, the connection of the waiter is gone.
            if is_here or redis.call('PUBLISH', channel, owner .. ' ' .. string.format('%.0f', token)) > 0 then
                redis.call('SET', KEYS[1], owner, 'PX', ttl_ms)
                return owner, token, is_here
            end
        end
        owner = redis.call('LPOP', KEYS[3])
    end
    return nil, token
end

