// A fencepost worker in Java 17 or newer, without dependencies: copy this file beside your lock,
// implement FencepostKit.Lock, and call new FencepostKit(...).run(MyLock::new) in main.
//
// Whatever throws is reported as a failed step. Java 17 has no way to the system call, so its times
// follow a skewed clock, and a question about its clocks is not answered. The protocol is in
// docs/contract.md of fencepost.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class FencepostKit {
    /** What you write. One object plays all rounds of a worker. */
    public interface Lock {
        /** A token (any number if there are none), or null: not granted now, ask again. */
        Long acquire(String owner, long timeoutMs) throws Exception;

        /** The outcome: released, expired, superseded or unknown. */
        String release() throws Exception;
    }

    /** A lock that can be prolonged; false: it is not ours any more. */
    public interface Renewable {
        boolean renew() throws Exception;
    }

    /** A lock that knows whether it is still held. */
    public interface Watched {
        boolean held() throws Exception;
    }

    /** What a lock needs to know. */
    public record Task(String key, String lockKey, long ttlMs, List<String> endpoints, String backend, String worker) {}

    private final Map<String, List<String>> only = new TreeMap<>(Map.of(
            "FENCEPOST_WAIT", List.of("spin"),
            "FENCEPOST_RELEASE", List.of("compare-and-delete"),
            "FENCEPOST_FENCE_FLOOR", List.of("none"),
            "FENCEPOST_NESTED", List.of("1")));
    private final boolean tokens;
    private final Console console = new Console();
    private Task task;
    private Lock lock;

    /** `only`: settings of which your lock can do these values alone. */
    public FencepostKit(Map<String, List<String>> only, boolean tokens) {
        this.only.putAll(only);
        this.tokens = tokens;
    }

    /** Plays the task in the environment, and ends the process. */
    public void run(Function<Task, Lock> make) throws Exception {
        String key = setting("KEY", "account-42");
        task = new Task(key, setting("LOCK_KEY", "lock:" + key), number("TTL_MS", 2000),
                List.of(setting("ENDPOINTS", "").split(",")), setting("BACKEND", "redis"), setting("WORKER", "worker"));
        lock = make.apply(task);
        if (!(lock instanceof Renewable)) {
            only.putIfAbsent("FENCEPOST_RENEW", List.of("false"));
        }
        for (var one : only.entrySet()) {
            String asked = System.getenv(one.getKey());
            if (asked != null && !one.getValue().contains(asked)) {
                console.refuse("this worker has " + one.getKey() + "=" + String.join(" or ", one.getValue())
                        + " alone, and not " + asked);
            }
        }
        if (!setting("RESOURCE", "").startsWith("http:")) {
            console.refuse("this worker writes to an HTTP resource alone");
        }
        Thread listening = new Thread(console::listen);
        listening.setDaemon(true);
        listening.start();
        playAll();
        // At once: an ordinary exit waits for nothing, and neither does this one.
        Runtime.getRuntime().halt(0);
    }

    private void playAll() throws Exception {
        List<String> lacks = new ArrayList<>();
        if (!tokens) lacks.add("token");
        if (!(lock instanceof Renewable) && !(lock instanceof Watched)) lacks.add("lost");
        console.say("ready", "lacks", lacks, "only", only);
        console.gate("start", 0);
        long lastingNs = number("FOR_MS", 0) * 1_000_000, startedNs = System.nanoTime();
        long rounds = number("ROUNDS", lastingNs > 0 ? Long.MAX_VALUE : 1), played = 0;
        while (played < rounds && !(lastingNs > 0 && System.nanoTime() - startedNs >= lastingNs)) {
            played++;
            if (!play(played)) Thread.sleep(100);
        }
        console.say("done", "rounds", played);
    }

    /** Returns whether every step had an answer. */
    private boolean play(long round) throws Exception {
        console.say("acquiring", "round", round, "key", task.key());
        String owner = UUID.randomUUID().toString();
        long token, askedNs;
        try {
            long[] granted = acquire(owner);
            token = granted[0];
            askedNs = granted[1];
        } catch (Exception error) {
            return console.failed(round, "acquire", error);
        }
        Object[] hold = tokens
                ? new Object[] {"round", round, "key", task.key(), "token", token}
                : new Object[] {"round", round, "key", task.key()};
        console.say("acquired", with(hold, "owner", owner, "valid_until_ns", askedNs + task.ttlMs() * 1_000_000));
        Watchdog watchdog = new Watchdog(hold);
        console.gate("after_acquire", round);
        boolean answered = readWorkWrite(round, hold, owner, tokens ? token : null, watchdog);
        console.gate("before_release", round);
        watchdog.end();
        console.say("releasing", hold);
        try {
            console.say("released", with(hold, "outcome", lock.release()));
        } catch (Exception error) {
            return console.failed(round, "release", error);
        }
        return answered;
    }

    private long[] acquire(String owner) throws Exception {
        long timeoutMs = number("ACQUIRE_TIMEOUT_MS", 30000);
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        while (true) {
            long askedNs = System.nanoTime();
            Long token = lock.acquire(owner, Math.max((deadline - askedNs) / 1_000_000, 0));
            if (token != null) return new long[] {token, askedNs};
            if (System.nanoTime() >= deadline) throw new IOException("not granted within " + timeoutMs + " ms");
            Thread.sleep(50);
        }
    }

    private boolean readWorkWrite(long round, Object[] hold, String owner, Long token, Watchdog watchdog) throws Exception {
        StringBuilder headers = new StringBuilder("X-Owner: " + owner + "\r\n");
        long count = 0;
        if (setting("READS", "true").equals("true")) {
            try {
                Answer stored = ask("GET", "", "", 200, 404);
                long position = stored.status == 404 ? 0 : stored.number("position");
                headers.append("X-Based-On: ").append(position).append("\r\n");
                // The value is a string with JSON in it, and its quotes are escaped.
                count = new Answer(200, stored.text.replace("\\", "")).number("count");
            } catch (Exception error) {
                return console.failed(round, "read", error);
            }
        }
        boolean stops = setting("ON_LOST", "stop").equals("stop");
        watchdog.work(number("WORK_MS", 50), stops);
        synchronized (watchdog.world) {
            // Stops the watchdog as well, as a garbage collector would.
            Thread.sleep(number("PAUSE_MS", 0));
        }
        if (watchdog.isLost()) {
            console.say("lost", with(hold, "reason", watchdog.reason));
            if (stops) return true;
        }
        if (token != null && setting("FENCE", "on").equals("on")) {
            headers.append("X-Fence-Token: ").append(token).append("\r\n");
        }
        String body = json(fields("count", count + 1, "by", task.worker(), "token", token));
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(body.getBytes(StandardCharsets.UTF_8));
        StringBuilder digits = new StringBuilder();
        for (int i = 0; i < 8; i++) digits.append(String.format("%02x", hash[i]));
        // After the last look: what happens at this gate, no lock can see.
        console.gate("before_write", round);
        console.say("writing", with(hold, "owner", owner, "body", digits.toString()));
        try {
            Answer answer = ask("PUT", headers.toString(), body, 200, 409);
            if (answer.status == 200) {
                console.say("write_accepted", with(hold, "owner", owner, "position", answer.number("position")));
            } else {
                console.say("write_rejected", "round", round, "key", task.key(), "owner", owner,
                        "seen", answer.number("seen"), "got", answer.number("got"));
            }
        } catch (Exception error) {
            return console.failed(round, "write", error);
        }
        return true;
    }

    /** Sends one request on a connection of its own: nothing repeats it. */
    private Answer ask(String method, String headers, String body, Integer... expected) throws Exception {
        URI resource = URI.create(setting("RESOURCE", ""));
        String path = "/r/" + URLEncoder.encode(task.key(), StandardCharsets.UTF_8).replace("+", "%20");
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(resource.getHost(), resource.getPort()), 5000);
            socket.setSoTimeout(30000);
            String head = method + " " + path + " HTTP/1.1\r\nHost: " + resource.getAuthority()
                    + "\r\nConnection: close\r\n" + headers + "Content-Length: " + bytes.length + "\r\n\r\n";
            socket.getOutputStream().write(head.getBytes(StandardCharsets.UTF_8));
            socket.getOutputStream().write(bytes);
            socket.getOutputStream().flush();
            String answer = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            String[] parts = answer.split("\r\n\r\n", 2);
            String[] status = parts[0].split(" ");
            if (parts.length < 2 || status.length < 2) throw new IOException("no answer");
            Answer it = new Answer(Integer.parseInt(status[1]), parts[1]);
            if (!Arrays.asList(expected).contains(it.status)) throw new IOException(it.status + ": " + it.text);
            return it;
        }
    }

    private record Answer(int status, String text) {
        /** The number of a field, or 0. */
        long number(String field) {
            Matcher found = Pattern.compile("\"" + field + "\"\\s*:\\s*(\\d+)").matcher(text);
            return found.find() ? Long.parseLong(found.group(1)) : 0;
        }
    }

    /** Renews at a third of the TTL if the task says so, and knows whether the lock is lost. */
    private final class Watchdog {
        final Object world = new Object();
        private final Object belief = new Object();
        volatile String reason;
        private final Object[] hold;
        private final Thread thread;

        Watchdog(Object[] hold) {
            this.hold = hold;
            boolean renews = setting("RENEW", "false").equals("true") && lock instanceof Renewable;
            thread = renews ? new Thread(this::renewAll) : null;
            if (thread != null) thread.start();
        }

        private void renewAll() {
            while (reason == null) {
                try {
                    Thread.sleep(task.ttlMs() / 3);
                } catch (InterruptedException ended) {
                    return;
                }
                synchronized (world) {
                    long askedNs = System.nanoTime();
                    try {
                        boolean isOurs = ((Renewable) lock).renew();
                        synchronized (belief) {
                            if (!isOurs) {
                                if (reason == null) reason = "the renewal was refused";
                            } else if (reason == null) {
                                console.say("renewed", with(hold, "valid_until_ns", askedNs + task.ttlMs() * 1_000_000));
                            }
                        }
                    } catch (Exception error) {
                        // Whether it took effect is unknown: try again.
                        System.err.println("renew: " + error);
                    }
                }
            }
        }

        boolean isLost() {
            if (reason == null && lock instanceof Watched watched) {
                String found = null;
                try {
                    if (!watched.held()) found = "the lock is not ours any more";
                } catch (Exception error) {
                    found = "the lock cannot be looked at: " + error;
                }
                synchronized (belief) {
                    // No renewal is told once the lock was found lost.
                    if (reason == null) reason = found;
                }
            }
            return reason != null;
        }

        /** Works, and stops early once the lock is lost. */
        void work(long ms, boolean stops) throws InterruptedException {
            long end = System.nanoTime() + ms * 1_000_000;
            while (System.nanoTime() < end && !(stops && isLost())) {
                long left = Math.max((end - System.nanoTime()) / 1_000_000, 0);
                Thread.sleep(Math.min(left + 1, Math.max(task.ttlMs() / 4, 1)));
            }
        }

        void end() throws InterruptedException {
            if (thread == null) return;
            synchronized (world) {
                // Not in the middle of a renewal, which would come after the release.
                thread.interrupt();
            }
            thread.join();
        }
    }

    /** Events on stdout, gates and questions on stdin. */
    private static final class Console {
        private final Set<String> stopsAt = new HashSet<>(List.of(setting("GATES", "").split(",")));
        private final Set<String> opened = new HashSet<>();

        void say(String event, Object... more) {
            synchronized (System.out) {
                // The time is taken under the lock, so that the lines are in its order.
                String line = json(fields(with(new Object[] {"at_ns", System.nanoTime(), "event", event}, more)));
                System.out.println(line);
                System.out.flush();
            }
        }

        boolean failed(long round, String during, Exception error) {
            say("failed", "round", round, "during", during, "error", error.toString());
            return false;
        }

        void refuse(String reason) {
            say("refused", "reason", reason);
            Runtime.getRuntime().halt(0);
        }

        /** Waits for the go, which may have come already. */
        void gate(String gate, long round) throws InterruptedException {
            if (!stopsAt.contains(gate)) return;
            say("at_gate", "round", round, "gate", gate);
            synchronized (opened) {
                while (!opened.contains(gate + " " + round)) opened.wait();
            }
        }

        void listen() {
            Pattern go = Pattern.compile("\"go\"\\s*:\\s*\"(\\w+)\"");
            try (var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    Matcher gate = go.matcher(line);
                    if (!gate.find()) continue;
                    synchronized (opened) {
                        opened.add(gate.group(1) + " " + new Answer(0, line).number("round"));
                        opened.notifyAll();
                    }
                }
            } catch (IOException error) {
                System.err.println("stdin: " + error);
            }
            // The harness is gone, and so are we, but not in the middle of a line.
            synchronized (System.out) {
                Runtime.getRuntime().halt(0);
            }
        }
    }

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault("FENCEPOST_" + name, otherwise);
    }

    private static long number(String name, long otherwise) {
        return Long.parseLong(setting(name, Long.toString(otherwise)));
    }

    private static Object[] with(Object[] these, Object... more) {
        Object[] all = Arrays.copyOf(these, these.length + more.length);
        System.arraycopy(more, 0, all, these.length, more.length);
        return all;
    }

    private static Map<String, Object> fields(Object... pairs) {
        Map<String, Object> fields = new java.util.LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) fields.put((String) pairs[i], pairs[i + 1]);
        return fields;
    }

    private static String json(Object value) {
        if (value == null || value instanceof Number) return String.valueOf(value);
        if (value instanceof List<?> list) {
            return "[" + String.join(",", list.stream().map(FencepostKit::json).toList()) + "]";
        }
        if (value instanceof Map<?, ?> map) {
            var fields = map.entrySet().stream().map(field -> json(field.getKey()) + ":" + json(field.getValue()));
            return "{" + String.join(",", fields.toList()) + "}";
        }
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : value.toString().toCharArray()) {
            if (c == '"' || c == '\\') quoted.append('\\').append(c);
            else if (c < ' ') quoted.append(String.format("\\u%04x", (int) c));
            else quoted.append(c);
        }
        return quoted.append('"').toString();
    }
}
