# A fencepost worker in Ruby 2.7 or newer, without dependencies: copy this file beside your lock.
#
#   require_relative "fencepost_kit"
#
#   class MyLock
#     def initialize(task) = @task = task  # key, lock_key, ttl (seconds), endpoints, backend, worker
#     def acquire(owner, timeout) = ...    # a token, true without tokens, nil: not now
#     def release = ...                    # nil, or an outcome: expired, superseded, unknown
#     def renew = ...                      # optional: false if the lock is not ours any more
#     def held = ...                       # optional: am I still the holder?
#   end
#
#   FencepostKit.run(MyLock, only: { "FENCEPOST_BACKEND" => ["redis"] }, tokens: true)
#
# Whatever raises is reported as a failed step. The protocol is in docs/contract.md of fencepost.

require "digest"
require "json"
require "net/http"
require "securerandom"
require "set"
require "uri"

module FencepostKit
  ONLY = {
    "FENCEPOST_WAIT" => ["spin"],
    "FENCEPOST_RELEASE" => ["compare-and-delete"],
    "FENCEPOST_FENCE_FLOOR" => ["none"],
    "FENCEPOST_NESTED" => ["1"]
  }.freeze
  Task = Struct.new(:key, :lock_key, :ttl, :endpoints, :backend, :worker)

  # Plays the task in the environment, and ends the process.
  def self.run(lock_class, only: {}, tokens: true)
    # The kernel ignores SIGTERM for pid 1 unless somebody listens.
    trap("TERM") { exit!(0) }
    renews, looks = %i[renew held].map { |name| lock_class.method_defined?(name) }
    can = ONLY.merge(renews ? {} : { "FENCEPOST_RENEW" => ["false"] }).merge(only)
    console = Console.new(setting("GATES", "").split(","))
    can.each do |name, values|
      asked = ENV.fetch(name, values[0])
      console.refuse("this worker has #{name}=#{values.join(' or ')} alone, and not #{asked}") unless values.include?(asked)
    end
    console.refuse("this worker writes to an HTTP resource alone") unless setting("RESOURCE", "").start_with?("http:")
    lacks = (tokens ? [] : ["token"]) + (renews || looks ? [] : ["lost"])
    key = setting("KEY", "account-42")
    task = Task.new(key, setting("LOCK_KEY", "lock:#{key}"), millis("TTL_MS", 2000),
                    setting("ENDPOINTS", "").split(","), setting("BACKEND", "redis"), setting("WORKER", "worker"))
    Worker.new(task, lock_class.new(task), console, tokens).play_all(lacks, can)
    exit!(0)
  end

  def self.setting(name, otherwise) = ENV.fetch("FENCEPOST_#{name}", otherwise)

  # In seconds.
  def self.millis(name, otherwise) = setting(name, otherwise).to_i / 1000.0

  CLOCK_GETTIME = { "x86_64" => 228, "aarch64" => 113 }.fetch(RUBY_PLATFORM[/x86_64|aarch64/])

  # CLOCK_MONOTONIC by the system call itself: Ruby's own clock goes through the vDSO, which a
  # `skew` patches, and the times of events must not follow it.
  def self.now_ns
    now = "\xff".b * 16 # Ruby refuses to pass a string with a null byte.
    verbose, $VERBOSE = $VERBOSE, nil # Ruby warns about every system call.
    Kernel.syscall(CLOCK_GETTIME, 1, now)
    sec, nsec = now.unpack("qq")
    sec * 1_000_000_000 + nsec
  ensure
    $VERBOSE = verbose
  end

  def self.monotonic = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # A step without a usable answer, which has been reported.
  class Failure < StandardError; end

  class Worker
    attr_reader :task, :lock, :console, :stops

    def initialize(task, lock, console, tokens)
      @task, @lock, @console, @tokens = task, lock, console, tokens
      @stops = FencepostKit.setting("ON_LOST", "stop") == "stop"
      @resource = Resource.new(FencepostKit.setting("RESOURCE", ""), task.key)
    end

    def play_all(lacks, only)
      @console.say("ready", lacks: lacks, only: only)
      @console.gate("start", 0)
      lasting_ns = FencepostKit.setting("FOR_MS", "0").to_i * 1_000_000
      rounds = FencepostKit.setting("ROUNDS", lasting_ns.positive? ? Float::INFINITY : 1).to_f
      started_ns, played = FencepostKit.now_ns, 0
      while played < rounds && !(lasting_ns.positive? && FencepostKit.now_ns - started_ns >= lasting_ns)
        played += 1
        begin
          play(played)
        rescue Failure
          sleep 0.1
        end
      end
      @console.say("done", rounds: played)
    end

    def play(round)
      @console.say("acquiring", round: round, key: @task.key)
      owner = SecureRandom.uuid
      token, asked_ns = step(round, "acquire") { acquire(owner) }
      hold = { round: round, key: @task.key }
      hold[:token] = token if @tokens
      @console.say("acquired", **hold, owner: owner, valid_until_ns: asked_ns + (@task.ttl * 1e9).to_i)
      watchdog = Watchdog.new(self, hold)
      begin
        @console.gate("after_acquire", round)
        read_work_write(round, hold, owner, watchdog)
      ensure
        @console.gate("before_release", round)
        watchdog.end
        @console.say("releasing", **hold)
        outcome = step(round, "release") { @lock.release }
        @console.say("released", **hold, outcome: outcome || "released")
      end
    end

    # Reports whatever a step raises.
    def step(round, during)
      yield
    rescue StandardError => error
      @console.say("failed", round: round, during: during, error: "#{error.class}: #{error.message}")
      raise Failure
    end

    def acquire(owner)
      timeout = FencepostKit.millis("ACQUIRE_TIMEOUT_MS", 30_000)
      deadline = FencepostKit.monotonic + timeout
      loop do
        asked_ns = FencepostKit.now_ns
        token = @lock.acquire(owner, [deadline - FencepostKit.monotonic, 0].max)
        return token, asked_ns if token
        raise "not granted within #{timeout} s" if FencepostKit.monotonic >= deadline

        sleep 0.05
      end
    end

    def read_work_write(round, hold, owner, watchdog)
      headers, count = { "X-Owner" => owner }, 0
      if FencepostKit.setting("READS", "true") == "true"
        position, count = step(round, "read") { @resource.read }
        headers["X-Based-On"] = position.to_s
      end
      watchdog.work(FencepostKit.millis("WORK_MS", 50))
      # Stops the watchdog as well, as a garbage collector would.
      watchdog.world.synchronize { sleep FencepostKit.millis("PAUSE_MS", 0) }
      if watchdog.lost?
        @console.say("lost", **hold, reason: watchdog.reason)
        return if @stops
      end
      headers["X-Fence-Token"] = hold[:token].to_s if hold[:token] && FencepostKit.setting("FENCE", "on") == "on"
      body = JSON.generate({ count: count + 1, by: @task.worker, token: hold[:token] })
      # After the last look: what happens at this gate, no lock can see.
      @console.gate("before_write", round)
      @console.say("writing", **hold, owner: owner, body: Digest::SHA256.hexdigest(body)[0, 16])
      status, answer = step(round, "write") { @resource.write(body, headers) }
      if status == 200
        @console.say("write_accepted", **hold, owner: owner, position: answer["position"])
      else
        refused = { seen: answer["seen"], got: answer["got"] }
        @console.say("write_rejected", round: round, key: @task.key, owner: owner, **refused)
      end
    end
  end

  # Renews at a third of the TTL if the task says so, and knows whether the lock is lost.
  class Watchdog
    attr_reader :reason, :world

    def initialize(worker, hold)
      @worker, @lock, @ttl, @hold = worker, worker.lock, worker.task.ttl, hold
      @world, @belief, @ended = Mutex.new, Mutex.new, Queue.new
      @thread = Thread.new { renew_all } if FencepostKit.setting("RENEW", "false") == "true"
    end

    def renew_all
      until @reason || ended_within(@ttl / 3)
        @world.synchronize do
          asked_ns = FencepostKit.now_ns
          ours = @lock.renew != false
          @belief.synchronize do
            if !ours
              @reason ||= "the renewal was refused"
            elsif @reason.nil?
              @worker.console.say("renewed", **@hold, valid_until_ns: asked_ns + (@ttl * 1e9).to_i)
            end
          end
        rescue StandardError => error # Whether it took effect is unknown: try again.
          warn "renew: #{error.inspect}"
        end
      end
    end

    def ended_within(seconds)
      limit = FencepostKit.monotonic + seconds
      sleep 0.01 while @ended.empty? && FencepostKit.monotonic < limit
      !@ended.empty?
    end

    def lost?
      if @reason.nil? && @lock.respond_to?(:held)
        begin
          reason = "the lock is not ours any more" unless @lock.held
        rescue StandardError => error
          reason = "the lock cannot be looked at: #{error.inspect}"
        end
        # No renewal is told once the lock was found lost.
        @belief.synchronize { @reason ||= reason }
      end
      !@reason.nil?
    end

    # Works, and stops early once the lock is lost.
    def work(seconds)
      finish = FencepostKit.monotonic + seconds
      while FencepostKit.monotonic < finish && !(@worker.stops && lost?)
        sleep [[finish - FencepostKit.monotonic, 0].max, @ttl / 4].min
      end
    end

    def end
      @ended << true
      # A renewal under way would come after the release.
      @thread&.join
    end
  end

  # One key of the protected resource; each request has a connection of its own.
  class Resource
    def initialize(url, key)
      @address = URI(url)
      @path = "/r/#{URI.encode_www_form_component(key).gsub('+', '%20')}"
    end

    # The position of the value and the count in it, both 0 where there is none yet.
    def read
      status, answer = ask(Net::HTTP::Get.new(@path), [200, 404])
      return 0, 0 if status == 404

      count = begin
        Integer(JSON.parse(answer["value"])["count"])
      rescue StandardError
        0
      end
      [answer["position"], count]
    end

    def write(body, headers)
      request = Net::HTTP::Put.new(@path, headers)
      request.body = body
      ask(request, [200, 409])
    end

    def ask(request, expected)
      http = Net::HTTP.new(@address.hostname, @address.port, nil)
      http.open_timeout, http.read_timeout, http.max_retries = 5, 30, 0
      answer = http.start { http.request(request) }
      status = answer.code.to_i
      raise "#{status}: #{answer.body}" unless expected.include?(status)

      [status, JSON.parse(answer.body)]
    end
  end

  # Events on stdout, gates and questions on stdin.
  class Console
    def initialize(gates)
      @stops_at, @opened = gates, Set.new
      @mutex, @changed, @speaking = Mutex.new, ConditionVariable.new, Mutex.new
      Thread.new { listen }
    end

    def say(event, **fields)
      @speaking.synchronize do
        # The time is taken under the lock, so that the lines are in its order.
        $stdout.syswrite("#{JSON.generate({ at_ns: FencepostKit.now_ns, event: event, **fields })}\n")
      end
    end

    def refuse(reason)
      say("refused", reason: reason)
      exit!(0)
    end

    # Waits for the go, which may have come already.
    def gate(gate, round)
      return unless @stops_at.include?(gate)

      say("at_gate", round: round, gate: gate)
      @mutex.synchronize { @changed.wait(@mutex) until @opened.include?([gate, round]) }
    end

    def listen
      $stdin.each_line { |line| order(line) }
      # The harness is gone, and so are we, but not in the middle of a line.
      @speaking.synchronize { exit!(0) }
    end

    def order(line)
      order = JSON.parse(line)
      if order["go"]
        @mutex.synchronize { @opened << [order["go"], order["round"]] && @changed.broadcast }
      elsif order["tell"] == "clock"
        # These two are read as everybody reads them, with every skew.
        clock = ->(id) { Process.clock_gettime(id, :nanosecond) }
        say("clock", realtime_ns: clock.(Process::CLOCK_REALTIME), monotonic_ns: clock.(Process::CLOCK_MONOTONIC))
      end
    rescue StandardError => error
      warn "ignored #{line.inspect} on stdin: #{error.inspect}"
    end
  end
end
