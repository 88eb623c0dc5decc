# A lock on one Redis, by hand: what the kit leaves to you.

require "socket"
require "io/wait"
require_relative "fencepost_kit"

ACQUIRE = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('incr',KEYS[2]) end return 0"
RELEASE = "local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1"
RENEW = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"
HELD = "return redis.call('get',KEYS[1])==ARGV[1] and 1 or 0"

class RedisLock
  def initialize(task)
    @task = task
  end

  def acquire(owner, _timeout)
    @owner = owner
    token = eval(ACQUIRE)
    token if token.positive?
  end

  def release
    %w[released expired superseded][eval(RELEASE)]
  end

  def renew
    eval(RENEW) == 1
  end

  def held
    eval(HELD) == 1
  end

  private

  # EVAL of a script that answers with a number.
  def eval(script)
    words = ["EVAL", script, "2", @task.lock_key, "fence:#{@task.key}", @owner, (@task.ttl * 1000).to_i.to_s]
    host, _, port = @task.endpoints[0].rpartition(":")
    Socket.tcp(host, port.to_i, connect_timeout: 5) do |redis|
      redis.write("*#{words.size}\r\n" + words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join)
      raise "Redis does not answer" unless redis.wait_readable(5)

      answer = redis.gets
      raise "Redis answers #{answer.inspect}" unless answer&.start_with?(":")

      answer[1..].to_i
    end
  end
end

FencepostKit.run(RedisLock, only: { "FENCEPOST_BACKEND" => ["redis"] })
