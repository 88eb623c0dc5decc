-- KEYS: the lock. ARGV: the channel of the observer who asks.
-- As in observe.lua, and without a token: where another library has its own is
-- not known. A hash names its owner where it has one field.
local kind = redis.call('TYPE', KEYS[1]).ok
local owner = false
if kind == 'string' then
    owner = redis.call('GET', KEYS[1])
elseif kind == 'hash' and redis.call('HLEN', KEYS[1]) == 1 then
    owner = redis.call('HKEYS', KEYS[1])[1]
end
redis.call('PUBLISH', ARGV[1], '-' .. (owner and (' ' .. owner) or ''))
return 1
