// A lock on one Redis, by hand: what the kit leaves to you.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

final class RedisLock implements FencepostKit.Lock, FencepostKit.Renewable, FencepostKit.Watched {
    private static final String ACQUIRE = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('incr',KEYS[2]) end return 0";
    private static final String RELEASE = "local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1";
    private static final String RENEW = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";
    private static final String HELD = "return redis.call('get',KEYS[1])==ARGV[1] and 1 or 0";

    private final FencepostKit.Task task;
    private String owner;

    RedisLock(FencepostKit.Task task) {
        this.task = task;
    }

    public Long acquire(String owner, long timeoutMs) throws IOException {
        this.owner = owner;
        long token = eval(ACQUIRE);
        return token > 0 ? token : null;
    }

    public String release() throws IOException {
        return List.of("released", "expired", "superseded").get((int) eval(RELEASE));
    }

    public boolean renew() throws IOException {
        return eval(RENEW) == 1;
    }

    public boolean held() throws IOException {
        return eval(HELD) == 1;
    }

    /** EVAL of a script that answers with a number. */
    private long eval(String script) throws IOException {
        String[] words = {"EVAL", script, "2", task.lockKey(), "fence:" + task.key(), owner, Long.toString(task.ttlMs())};
        StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
        for (String word : words) {
            request.append('$').append(word.getBytes(StandardCharsets.UTF_8).length).append("\r\n").append(word).append("\r\n");
        }
        String endpoint = task.endpoints().get(0);
        int colon = endpoint.lastIndexOf(':');
        try (Socket redis = new Socket()) {
            redis.connect(new InetSocketAddress(endpoint.substring(0, colon), Integer.parseInt(endpoint.substring(colon + 1))), 5000);
            redis.setSoTimeout(5000);
            redis.getOutputStream().write(request.toString().getBytes(StandardCharsets.UTF_8));
            String answer = new BufferedReader(new InputStreamReader(redis.getInputStream(), StandardCharsets.UTF_8)).readLine();
            if (answer == null || !answer.startsWith(":")) throw new IOException("Redis answers " + answer);
            return Long.parseLong(answer.substring(1));
        }
    }

    public static void main(String[] arguments) throws Exception {
        new FencepostKit(Map.of("FENCEPOST_BACKEND", List.of("redis")), true).run(RedisLock::new);
    }
}
