<?php
// A fencepost worker in PHP 8.1 or newer (command line), without dependencies: copy this file beside
// your lock.
//
//   require __DIR__ . "/fencepost_kit.php";
//
//   class MyLock {
//       function __construct(private FencepostTask $task) {}
//       function acquire(string $owner, float $timeout): int|bool|null {} // a token, true without tokens, null: not now
//       function release(): ?string {} // null, or an outcome: expired, superseded, unknown
//       function renew(): bool {}      // optional: false if the lock is not ours any more
//       function held(): bool {}       // optional: am I still the holder?
//   }
//
//   fencepost_run(MyLock::class, only: ["FENCEPOST_BACKEND" => ["redis"]], tokens: true);
//
// Whatever throws is reported as a failed step. PHP has one thread: stdin is read, and the lock is
// renewed, at gates and while the worker works; a lock that waits by itself should wait with
// fencepost_sleep(). The protocol is in docs/contract.md of fencepost.

const FENCEPOST_ONLY = [
    "FENCEPOST_WAIT" => ["spin"],
    "FENCEPOST_RELEASE" => ["compare-and-delete"],
    "FENCEPOST_FENCE_FLOOR" => ["none"],
    "FENCEPOST_NESTED" => ["1"],
];

final class FencepostTask
{
    /** @param string[] $endpoints */
    public function __construct(
        public readonly string $key,
        public readonly string $lockKey,
        public readonly float $ttl,
        public readonly array $endpoints,
        public readonly string $backend,
        public readonly string $worker,
    ) {
    }
}

/** Plays the task in the environment, and ends the process. */
function fencepost_run(string $lockClass, array $only = [], bool $tokens = true): never
{
    // Whatever goes wrong is an exception, and its text goes to stderr.
    ini_set("display_errors", "stderr");
    set_error_handler(fn (int $level, string $text) => throw new ErrorException($text));
    // The kernel ignores SIGTERM for pid 1 unless somebody listens.
    if (function_exists("pcntl_async_signals")) {
        pcntl_async_signals(true);
        pcntl_signal(SIGTERM, fn () => exit(0));
    }
    $console = FencepostConsole::it();
    [$renews, $looks] = [method_exists($lockClass, "renew"), method_exists($lockClass, "held")];
    $can = array_merge(FENCEPOST_ONLY, $renews ? [] : ["FENCEPOST_RENEW" => ["false"]], $only);
    foreach ($can as $name => $values) {
        $asked = getenv($name);
        if ($asked !== false && !in_array($asked, $values, true)) {
            $console->refuse("this worker has $name=" . implode(" or ", $values) . " alone, and not $asked");
        }
    }
    if (!str_starts_with(fencepost_setting("RESOURCE", ""), "http:")) {
        $console->refuse("this worker writes to an HTTP resource alone");
    }
    $lacks = array_merge($tokens ? [] : ["token"], $renews || $looks ? [] : ["lost"]);
    $key = fencepost_setting("KEY", "account-42");
    $task = new FencepostTask(
        $key,
        fencepost_setting("LOCK_KEY", "lock:$key"),
        fencepost_millis("TTL_MS", 2000),
        explode(",", fencepost_setting("ENDPOINTS", "")),
        fencepost_setting("BACKEND", "redis"),
        fencepost_setting("WORKER", "worker"),
    );
    (new FencepostWorker($task, new $lockClass($task), $console, $tokens))->playAll($lacks, $can);
    exit(0);
}

function fencepost_setting(string $name, string $otherwise): string
{
    $value = getenv("FENCEPOST_$name");
    return $value === false ? $otherwise : $value;
}

/** In seconds. */
function fencepost_millis(string $name, int $otherwise): float
{
    return (int) fencepost_setting($name, (string) $otherwise) / 1000;
}

/** Sleeps, and does what has to be done meanwhile. */
function fencepost_sleep(float $seconds): void
{
    $end = hrtime(true) + (int) ($seconds * 1e9);
    do {
        FencepostConsole::it()->attend(max(min(($end - hrtime(true)) / 1e9, 0.05), 0));
    } while (hrtime(true) < $end);
}

/** CLOCK_MONOTONIC by the system call itself: hrtime() goes through the vDSO, which a `skew` patches,
 *  and the times of events must not follow it. Without FFI it is hrtime() all the same, and a
 *  question about the clocks is not answered. */
function fencepost_now_ns(): int
{
    static $libc = null, $now = null;
    if (!extension_loaded("FFI")) {
        return hrtime(true);
    }
    $libc ??= FFI::cdef("long syscall(long number, long clock, long *now);");
    $now ??= $libc->new("long[2]");
    $libc->syscall(php_uname("m") === "aarch64" ? 113 : 228, 1, $now);
    return $now[0] * 1_000_000_000 + $now[1];
}

/** A step without a usable answer, which has been reported. */
final class FencepostFailure extends Exception
{
}

final class FencepostWorker
{
    private bool $stops;
    private ?string $lost = null;

    public function __construct(
        private FencepostTask $task,
        private object $lock,
        private FencepostConsole $console,
        private bool $tokens,
    ) {
        $this->stops = fencepost_setting("ON_LOST", "stop") === "stop";
    }

    public function playAll(array $lacks, array $only): void
    {
        $this->console->say("ready", ["lacks" => $lacks, "only" => $only]);
        $this->console->gate("start", 0);
        $lastingNs = (int) fencepost_setting("FOR_MS", "0") * 1_000_000;
        $rounds = (float) fencepost_setting("ROUNDS", $lastingNs > 0 ? (string) PHP_INT_MAX : "1");
        [$startedNs, $played] = [fencepost_now_ns(), 0];
        while ($played < $rounds && !($lastingNs > 0 && fencepost_now_ns() - $startedNs >= $lastingNs)) {
            $played += 1;
            try {
                $this->play($played);
            } catch (FencepostFailure) {
                fencepost_sleep(0.1);
            }
        }
        $this->console->say("done", ["rounds" => $played]);
    }

    private function play(int $round): void
    {
        $this->console->say("acquiring", ["round" => $round, "key" => $this->task->key]);
        $owner = bin2hex(random_bytes(16));
        [$token, $askedNs] = $this->step($round, "acquire", fn () => $this->acquire($owner));
        $hold = ["round" => $round, "key" => $this->task->key] + ($this->tokens ? ["token" => $token] : []);
        $this->console->say("acquired", $hold + ["owner" => $owner, "valid_until_ns" => $this->until($askedNs)]);
        $this->lost = null;
        if (fencepost_setting("RENEW", "false") === "true") {
            $this->console->renew = fn () => $this->renew($hold);
            $this->console->renewalNs = fencepost_now_ns();
            $this->console->betweenNs = (int) ($this->task->ttl / 3 * 1e9);
        }
        try {
            $this->console->gate("after_acquire", $round);
            $this->readWorkWrite($round, $hold, $owner);
        } finally {
            $this->console->gate("before_release", $round);
            $this->console->renew = null;
            $this->console->say("releasing", $hold);
            $outcome = $this->step($round, "release", fn () => $this->lock->release());
            $this->console->say("released", $hold + ["outcome" => $outcome ?? "released"]);
        }
    }

    /** Reports whatever a step throws. */
    private function step(int $round, string $during, callable $do): mixed
    {
        try {
            return $do();
        } catch (Throwable $error) {
            $text = get_class($error) . ": " . $error->getMessage();
            $this->console->say("failed", ["round" => $round, "during" => $during, "error" => $text]);
            throw new FencepostFailure();
        }
    }

    private function until(int $askedNs): int
    {
        return $askedNs + (int) ($this->task->ttl * 1e9);
    }

    private function acquire(string $owner): array
    {
        $timeout = fencepost_millis("ACQUIRE_TIMEOUT_MS", 30000);
        $deadline = hrtime(true) + (int) ($timeout * 1e9);
        while (true) {
            $askedNs = fencepost_now_ns();
            $token = $this->lock->acquire($owner, max(($deadline - hrtime(true)) / 1e9, 0));
            if ($token) {
                return [$token, $askedNs];
            }
            if (hrtime(true) >= $deadline) {
                throw new Exception("not granted within $timeout s");
            }
            fencepost_sleep(0.05);
        }
    }

    /** Is called by the console when a third of the TTL is over. */
    private function renew(array $hold): void
    {
        $askedNs = fencepost_now_ns();
        try {
            if ($this->lock->renew() === false) {
                $this->lost = "the renewal was refused";
                $this->console->renew = null;
            } else {
                $this->console->say("renewed", $hold + ["valid_until_ns" => $this->until($askedNs)]);
            }
        } catch (Throwable $error) {
            // Whether it took effect is unknown: try again.
            fwrite(STDERR, "renew: $error\n");
        }
    }

    private function isLost(): bool
    {
        if ($this->lost === null && method_exists($this->lock, "held")) {
            try {
                $this->lost = $this->lock->held() ? null : "the lock is not ours any more";
            } catch (Throwable $error) {
                $this->lost = "the lock cannot be looked at: " . $error->getMessage();
            }
            if ($this->lost !== null) {
                $this->console->renew = null;
            }
        }
        return $this->lost !== null;
    }

    private function readWorkWrite(int $round, array $hold, string $owner): void
    {
        [$headers, $count] = [["X-Owner: $owner"], 0];
        if (fencepost_setting("READS", "true") === "true") {
            [$status, $stored] = $this->step($round, "read", fn () => $this->ask("GET", [], "", [200, 404]));
            $headers[] = "X-Based-On: " . ($status === 404 ? 0 : $stored["position"]);
            $count = (int) (json_decode((string) ($stored["value"] ?? ""), true)["count"] ?? 0);
        }
        // Works, and stops early once the lock is lost.
        $end = hrtime(true) + (int) (fencepost_millis("WORK_MS", 50) * 1e9);
        while (hrtime(true) < $end && !($this->stops && $this->isLost())) {
            fencepost_sleep(max(min(($end - hrtime(true)) / 1e9, $this->task->ttl / 4), 0));
        }
        // Nothing else is done in this pause, as in that of a garbage collector.
        usleep((int) (fencepost_millis("PAUSE_MS", 0) * 1e6));
        if ($this->isLost()) {
            $this->console->say("lost", $hold + ["reason" => $this->lost]);
            if ($this->stops) {
                return;
            }
        }
        if (isset($hold["token"]) && fencepost_setting("FENCE", "on") === "on") {
            $headers[] = "X-Fence-Token: {$hold["token"]}";
        }
        $body = json_encode(["count" => $count + 1, "by" => $this->task->worker, "token" => $hold["token"] ?? null]);
        // After the last look: what happens at this gate, no lock can see.
        $this->console->gate("before_write", $round);
        $owned = ["owner" => $owner];
        $this->console->say("writing", $hold + $owned + ["body" => substr(hash("sha256", $body), 0, 16)]);
        [$status, $answer] = $this->step($round, "write", fn () => $this->ask("PUT", $headers, $body, [200, 409]));
        if ($status === 200) {
            $this->console->say("write_accepted", $hold + $owned + ["position" => $answer["position"]]);
        } else {
            $refused = ["seen" => $answer["seen"], "got" => $answer["got"]];
            $this->console->say("write_rejected", ["round" => $round, "key" => $this->task->key] + $owned + $refused);
        }
    }

    /** Sends one request on a connection of its own: nothing repeats it. */
    private function ask(string $method, array $headers, string $body, array $expected): array
    {
        $url = parse_url(fencepost_setting("RESOURCE", ""));
        $at = "{$url["host"]}:{$url["port"]}";
        $stream = stream_socket_client("tcp://$at", $code, $reason, 5);
        stream_set_timeout($stream, 30);
        $length = strlen($body);
        $head = ["$method /r/" . rawurlencode($this->task->key) . " HTTP/1.1", "Host: $at", "Connection: close"];
        $head = array_merge($head, $headers, ["Content-Length: $length", "", $body]);
        fwrite($stream, implode("\r\n", $head));
        $answer = explode("\r\n\r\n", (string) stream_get_contents($stream), 2);
        fclose($stream);
        $status = (int) (explode(" ", $answer[0])[1] ?? 0);
        if (!in_array($status, $expected, true)) {
            throw new Exception($status === 0 ? "no answer" : "$status: $answer[1]");
        }
        return [$status, json_decode($answer[1], true, 16, JSON_THROW_ON_ERROR)];
    }
}

/** Events on stdout, gates and questions on stdin. */
final class FencepostConsole
{
    /** Renews the lock, if it is to be renewed now and then. */
    public ?Closure $renew = null;
    public int $renewalNs = 0;
    public int $betweenNs = 0;
    private array $opened = [];
    private string $rest = "";

    public static function it(): FencepostConsole
    {
        static $it = null;
        return $it ??= new FencepostConsole();
    }

    public function say(string $event, array $fields): void
    {
        fwrite(STDOUT, json_encode(["at_ns" => fencepost_now_ns(), "event" => $event] + $fields) . "\n");
        fflush(STDOUT);
    }

    public function refuse(string $reason): never
    {
        $this->say("refused", ["reason" => $reason]);
        exit(0);
    }

    /** Waits for the go, which may have come already. */
    public function gate(string $gate, int $round): void
    {
        if (!in_array($gate, explode(",", fencepost_setting("GATES", "")), true)) {
            return;
        }
        $this->say("at_gate", ["round" => $round, "gate" => $gate]);
        while (!isset($this->opened["$gate $round"])) {
            $this->attend(0.05);
        }
    }

    /** Reads what is on stdin, for so many seconds at most, and renews if it is time. */
    public function attend(float $seconds): void
    {
        if ($this->renew !== null && fencepost_now_ns() - $this->renewalNs >= $this->betweenNs) {
            $this->renewalNs = fencepost_now_ns();
            ($this->renew)();
        }
        [$read, $none] = [[STDIN], null];
        if (!stream_select($read, $none, $none, 0, (int) ($seconds * 1e6))) {
            return;
        }
        $part = fread(STDIN, 4096);
        if ($part === "" || $part === false) {
            exit(0); // The harness is gone, and so are we.
        }
        $lines = explode("\n", $this->rest . $part);
        $this->rest = array_pop($lines);
        array_map($this->order(...), $lines);
    }

    private function order(string $line): void
    {
        $order = json_decode($line, true);
        if (isset($order["go"])) {
            $this->opened["{$order["go"]} {$order["round"]}"] = true;
        } elseif (($order["tell"] ?? "") === "clock" && extension_loaded("FFI")) {
            // These two are read as everybody reads them, with every skew.
            $realtimeNs = (int) (microtime(true) * 1e6) * 1000;
            $this->say("clock", ["realtime_ns" => $realtimeNs, "monotonic_ns" => hrtime(true)]);
        }
    }
}
