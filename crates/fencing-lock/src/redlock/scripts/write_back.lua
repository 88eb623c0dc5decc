-- KEYS: the lock, its fence counter. ARGV: the owner, the token, the number of the request.
-- Only while the grant still stands: once somebody else was granted this lock
-- with a token of this counter, raising it after the fact would prove nothing.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return ARGV[3] * 8
end
if tonumber(redis.call('GET', KEYS[2])) < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[2], ARGV[2])
end
return ARGV[3] * 8 + 1
