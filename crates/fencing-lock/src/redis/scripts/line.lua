-- KEYS: the lock, its fence counter, the line, and what is known of those who
-- stand in it: for each owner its TTL, until when it counts as alive (both in
-- milliseconds, by this server's clock), and the channel on which it listens.

local function now_ms()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The TTL and the channel of a waiter, unless it is dead: who did not confirm
-- its wait for a TTL could not use the lock, because its own deadline counts
-- from its last confirmation.
local function alive(owner, now)
    local known = redis.call('HGET', KEYS[4], owner)
    local ttl_ms, until_ms, channel = string.match(known or '', '^(%d+) (%d+) (.+)$')
    if ttl_ms and tonumber(until_ms) > now then
        return ttl_ms, channel
    end
end

-- Gives the lock, which nobody holds, to the first in the line who is alive,
-- and says to whom and with which token. Who asks is alive without a proof, and
-- gets the lock when nobody else is there; `in_line` says that it came before.
local function hand_over(floor, asker, asker_ttl_ms, in_line)
    local token, now
    local function draw_token()
        token = token or next_token(KEYS[2], floor)
        if type(token) == 'table' then
            -- Before anybody holds anything: a grant without a token must not stand.
            error(token.err)
        end
        return token
    end
    local owner = redis.call('LPOP', KEYS[3])
    while owner and owner ~= asker do
        now = now or now_ms()
        local ttl_ms, channel = alive(owner, now)
        redis.call('HDEL', KEYS[4], owner)
        -- Where nobody hears of the grant, the connection of the waiter is gone.
        if ttl_ms then
            local grant = owner .. ' ' .. string.format('%.0f', draw_token())
            if redis.call('PUBLISH', channel, grant) > 0 then
                redis.call('SET', KEYS[1], owner, 'PX', ttl_ms)
                return owner, token
            end
        end
        owner = redis.call('LPOP', KEYS[3])
    end
    if asker then
        draw_token()
        if in_line then
            redis.call('HDEL', KEYS[4], asker)
        end
        redis.call('SET', KEYS[1], asker, 'PX', asker_ttl_ms)
        return asker, token
    end
end

