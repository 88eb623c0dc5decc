-- The next token of the counter `fence`, or an error table: whoever calls this
-- decides what must not stand without a token.
--
-- A counter alone starts again at 1 when the server forgets it. With a floor, a
-- token is also never below the server's clock in microseconds, so tokens go on
-- growing after amnesia, as long as that clock is not behind where it was. While
-- the counter is remembered, nothing rests on any clock: the next token is more
-- than the last in any case.
local function next_token(fence, floor)
    local token = redis.pcall('INCR', fence)
    if type(token) == 'table' then
        return token
    end
    if floor ~= 'server-clock' then
        if token > 1e12 then
            -- No counter gets there by counting: there was a floor once, and
            -- its expiry must not set back the tokens of today.
            redis.call('PERSIST', fence)
        end
        return token
    end
    local time = redis.call('TIME')
    local now_us = time[1] * 1000000 + time[2]
    local ahead_us = math.max(token - now_us, 0)
    token = now_us + ahead_us
    -- An idle counter may be forgotten once the clock alone gives more than it
    -- ever gave. The server judges that expiry by the same clock as the floor:
    -- when it says that two days have passed, it also says a higher floor, and
    -- it would have to be set back by two days after that to give a lower one.
    -- Two days are also longer than any hold can go on without a renewal, so
    -- who was handed a lock still finds its token here.
    local kept_ms = 172800000 + math.ceil(ahead_us / 1000)
    -- Written with a format, because Lua would turn it into 1.7e+15.
    redis.call('SET', fence, string.format('%.0f', token), 'PX', string.format('%.0f', kept_ms))
    return token
end

-- The answer to the request of this number that was granted this token: 1 and the token.
-- A table takes the server as long as a command does, so it is one negative number, of
-- the token and the last 32 bits of the request's, as long as a double has room for both.
local function granted(token, number)
    if token < 2097152 then
        return -(token * 4294967296 + number % 4294967296)
    end
    return {number * 8 + 1, token}
end

