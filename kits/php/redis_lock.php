<?php
// A lock on one Redis, by hand: what the kit leaves to you.

require __DIR__ . "/fencepost_kit.php";

const ACQUIRE = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('incr',KEYS[2]) end return 0";
const RELEASE = "local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1";
const RENEW = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";
const HELD = "return redis.call('get',KEYS[1])==ARGV[1] and 1 or 0";

final class RedisLock
{
    private string $owner = "";

    public function __construct(private FencepostTask $task)
    {
    }

    public function acquire(string $owner, float $timeout): ?int
    {
        $this->owner = $owner;
        return $this->eval(ACQUIRE) ?: null;
    }

    public function release(): string
    {
        return ["released", "expired", "superseded"][$this->eval(RELEASE)];
    }

    public function renew(): bool
    {
        return $this->eval(RENEW) === 1;
    }

    public function held(): bool
    {
        return $this->eval(HELD) === 1;
    }

    /** EVAL of a script that answers with a number. */
    private function eval(string $script): int
    {
        $ttlMs = (string) (int) ($this->task->ttl * 1000);
        $words = ["EVAL", $script, "2", $this->task->lockKey, "fence:{$this->task->key}", $this->owner, $ttlMs];
        $redis = stream_socket_client("tcp://{$this->task->endpoints[0]}", $code, $reason, 5);
        stream_set_timeout($redis, 5);
        $words = array_map(fn (string $word) => "$" . strlen($word) . "\r\n$word\r\n", $words);
        fwrite($redis, "*" . count($words) . "\r\n" . implode("", $words));
        $answer = (string) fgets($redis);
        fclose($redis);
        if (!str_starts_with($answer, ":")) {
            throw new Exception("Redis answers " . json_encode($answer));
        }
        return (int) substr($answer, 1);
    }
}

fencepost_run(RedisLock::class, only: ["FENCEPOST_BACKEND" => ["redis"]]);
