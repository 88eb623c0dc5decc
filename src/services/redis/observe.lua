-- KEYS: the lock, its fence counter. ARGV: the channel of the observer who asks.
-- The answer is published, not returned: so it stands in one line with the
-- notifications, and the observer knows which of them it already includes.
-- The token comes first because it holds no space, whatever the owner holds.
local token = redis.call('GET', KEYS[2]) or '-'
local owner = redis.call('GET', KEYS[1])
redis.call('PUBLISH', ARGV[1], token .. (owner and (' ' .. owner) or ''))
return 1
