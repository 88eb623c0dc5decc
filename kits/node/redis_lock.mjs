// A lock on one Redis, by hand: what the kit leaves to you.

import net from "node:net";
import { run } from "./fencepost_kit.mjs";

const ACQUIRE = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('incr',KEYS[2]) end return 0";
const RELEASE = "local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1";
const RENEW = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";
const HELD = "return redis.call('get',KEYS[1])==ARGV[1] and 1 or 0";

class RedisLock {
  constructor(task) {
    this.task = task;
  }

  async acquire(owner) {
    this.owner = owner;
    return this.eval(ACQUIRE);
  }

  async release() {
    return ["released", "expired", "superseded"][await this.eval(RELEASE)];
  }

  async renew() {
    return (await this.eval(RENEW)) === 1;
  }

  async held() {
    return (await this.eval(HELD)) === 1;
  }

  /** EVAL of a script that answers with a number. */
  eval(script) {
    const { key, lockKey, ttlMs, endpoints } = this.task;
    const words = ["EVAL", script, "2", lockKey, "fence:" + key, this.owner, String(ttlMs)];
    const request = `*${words.length}\r\n` + words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("");
    const [, host, port] = endpoints[0].match(/^(.*):(\d+)$/);
    return new Promise((resolve, reject) => {
      const redis = net.connect(Number(port), host, () => redis.write(request));
      redis.setTimeout(5000, () => redis.destroy(new Error("no answer")));
      redis.on("error", reject);
      redis.on("close", () => reject(new Error("Redis hung up")));
      redis.once("data", (answer) => {
        redis.end();
        const text = answer.toString();
        if (text.startsWith(":")) resolve(Number.parseInt(text.slice(1)));
        else reject(new Error(`Redis answers ${text}`));
      });
    });
  }
}

run(RedisLock, { only: { FENCEPOST_BACKEND: ["redis"] } });
