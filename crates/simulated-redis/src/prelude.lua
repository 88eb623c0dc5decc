-- What a script finds: the table `redis`, KEYS and ARGV, and no way to the world outside.
-- Given: a function that says which line of the script is being carried out, SHA-1, redis.call and
-- redis.pcall. Returns the function that runs a script, and the one that makes a text of a number.
local line_of_script, sha1, call, pcall = ...
local error, format, rawset, select, setmetatable, tostring, type, xpcall =
    error, string.format, rawset, select, setmetatable, tostring, type, xpcall
local globals = _G

-- `CODE text`, as the table that stands for an error.
local function error_table(text)
    if text:sub(1, 1) ~= '-' then
        return {err = 'ERR ' .. text}
    end
    local code, rest = text:match('^%-(%S*) (.*)$')
    if not code then
        return {err = 'ERR ' .. text:sub(2)}
    end
    return {err = code .. ' ' .. rest:gsub('^[\r\n]+', ''):gsub('[\r\n]+$', '')}
end

local redis = {
    call = call,
    pcall = pcall,
    LOG_DEBUG = 0,
    LOG_VERBOSE = 1,
    LOG_NOTICE = 2,
    LOG_WARNING = 3,
    log = function() end,
}

function redis.error_reply(...)
    local text = ...
    if select('#', ...) ~= 1 or type(text) ~= 'string' then
        return error_table('wrong number or type of arguments')
    end
    return error_table(text:sub(1, 1) == '-' and text or '-' .. text)
end

function redis.status_reply(...)
    local text = ...
    if select('#', ...) ~= 1 or type(text) ~= 'string' then
        return error_table('wrong number or type of arguments')
    end
    return {ok = text}
end

function redis.sha1hex(...)
    if select('#', ...) ~= 1 then
        error(error_table('wrong number of arguments'))
    end
    return sha1(tostring((...)))
end

function redis.replicate_commands()
    return true
end

local function explained(problem)
    if type(problem) ~= 'table' then
        problem = {err = 'ERR ' .. tostring(problem)}
    end
    local line = line_of_script()
    problem.line = line and tostring(line)
    return problem
end

globals.redis = redis
for _, name in ipairs({'collectgarbage', 'dofile', 'io', 'loadfile', 'module', 'newproxy', 'os', 'package', 'print',
    'require'}) do
    globals[name] = nil
end
globals.os = {clock = function() return 0 end}
setmetatable(globals, {
    __index = function(_, name)
        error('Script attempted to access nonexistent global variable \'' .. tostring(name) .. '\'', 2)
    end,
    __newindex = function()
        error('Attempt to modify a readonly table', 2)
    end,
})

local function run(script, keys, arguments)
    rawset(globals, 'KEYS', keys)
    rawset(globals, 'ARGV', arguments)
    return xpcall(script, explained)
end

return run, function(number) return format('%.17g', number) end
