// A fencepost worker in Node 18 or newer, without dependencies: copy this file beside your lock.
//
//   import { run } from "./fencepost_kit.mjs";
//
//   class Lock {
//     constructor(task) { this.task = task; } // key, lockKey, ttlMs, endpoints, backend, worker
//     async acquire(owner, timeoutMs) {}      // a token, true without tokens, null: not now
//     async release() {}                      // nothing, or an outcome: expired, superseded, unknown
//     async renew() {}                        // optional: false if the lock is not ours any more
//     async held() {}                         // optional: am I still the holder?
//   }
//
//   run(Lock, { only: { FENCEPOST_BACKEND: ["redis"] }, tokens: true });
//
// Whatever throws is reported as a failed step. Node has no way to the system call, so its times
// follow a skewed clock, and a question about its clocks is not answered. The protocol is in
// docs/contract.md of fencepost.

import { createHash, randomUUID } from "node:crypto";
import http from "node:http";
import readline from "node:readline";
import { writeSync } from "node:fs";

const CONNECT_MS = 5000;
const ANSWER_MS = 30000;
const ONLY = {
  FENCEPOST_WAIT: ["spin"],
  FENCEPOST_RELEASE: ["compare-and-delete"],
  FENCEPOST_FENCE_FLOOR: ["none"],
  FENCEPOST_NESTED: ["1"],
};

const env = process.env;
const setting = (name, otherwise) => env["FENCEPOST_" + name] ?? otherwise;
const number = (name, otherwise) => Number(setting(name, otherwise));
const nowNs = () => process.hrtime.bigint();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Plays the task in the environment, and ends the process. */
export async function run(Lock, { only = {}, tokens = true } = {}) {
  // The kernel ignores SIGTERM for pid 1 unless somebody listens.
  process.on("SIGTERM", () => process.exit(0));
  const [renews, looks] = ["renew", "held"].map((name) => typeof Lock.prototype[name] === "function");
  const can = { ...ONLY, ...(renews ? {} : { FENCEPOST_RENEW: ["false"] }), ...only };
  for (const [name, values] of Object.entries(can)) {
    if (!values.includes(env[name] ?? values[0])) {
      refuse(`this worker has ${name}=${values.join(" or ")} alone, and not ${env[name]}`);
    }
  }
  if (!setting("RESOURCE", "").startsWith("http:")) {
    refuse("this worker writes to an HTTP resource alone");
  }
  const lacks = [...(tokens ? [] : ["token"]), ...(renews || looks ? [] : ["lost"])];
  listen();
  const key = setting("KEY", "account-42");
  const task = {
    key,
    lockKey: setting("LOCK_KEY", "lock:" + key),
    ttlMs: number("TTL_MS", 2000),
    endpoints: setting("ENDPOINTS", "").split(","),
    backend: setting("BACKEND", "redis"),
    worker: setting("WORKER", "worker"),
  };
  await new Worker(task, new Lock(task), tokens).playAll(lacks, can);
  process.exit(0);
}

function refuse(reason) {
  say("refused", { reason });
  process.exit(0);
}

class Worker {
  constructor(task, lock, tokens) {
    Object.assign(this, { task, lock, tokens, key: task.key });
    this.stops = setting("ON_LOST", "stop") === "stop";
  }

  async playAll(lacks, only) {
    say("ready", { lacks, only });
    await gate("start", 0);
    const lasting = number("FOR_MS", 0);
    const rounds = number("ROUNDS", lasting ? Infinity : 1);
    const started = nowNs();
    let played = 0;
    while (played < rounds && !(lasting && nowNs() - started >= BigInt(lasting) * 1000000n)) {
      played += 1;
      if (!(await this.play(played))) await sleep(100);
    }
    say("done", { rounds: played });
  }

  /** Returns whether every step had an answer. */
  async play(round) {
    say("acquiring", { round, key: this.key });
    const owner = randomUUID();
    let token, askedNs;
    try {
      [token, askedNs] = await this.acquire(owner);
    } catch (error) {
      return failed(round, "acquire", error);
    }
    const hold = { round, key: this.key, ...(this.tokens ? { token } : {}) };
    const ttlNs = BigInt(this.task.ttlMs) * 1000000n;
    say("acquired", { ...hold, owner, valid_until_ns: askedNs + ttlNs });
    const watchdog = new Watchdog(this, hold, ttlNs);
    await gate("after_acquire", round);
    const answered = await this.readWorkWrite(round, hold, owner, watchdog);
    await gate("before_release", round);
    await watchdog.end();
    say("releasing", hold);
    try {
      const outcome = (await this.lock.release()) ?? "released";
      say("released", { ...hold, outcome });
    } catch (error) {
      return failed(round, "release", error);
    }
    return answered;
  }

  async acquire(owner) {
    const timeout = number("ACQUIRE_TIMEOUT_MS", 30000);
    const deadline = performance.now() + timeout;
    for (;;) {
      const askedNs = nowNs();
      const token = await this.lock.acquire(owner, Math.max(deadline - performance.now(), 0));
      if (token) return [token, askedNs];
      if (performance.now() >= deadline) throw new Error(`not granted within ${timeout} ms`);
      await sleep(50);
    }
  }

  async readWorkWrite(round, hold, owner, watchdog) {
    const headers = { "X-Owner": owner };
    let count = 0;
    if (setting("READS", "true") === "true") {
      try {
        const { status, answer } = await ask("GET", this.key, null, {}, [200, 404]);
        headers["X-Based-On"] = String(status === 404 ? 0 : answer.position);
        count = status === 404 ? 0 : countIn(answer.value);
      } catch (error) {
        return failed(round, "read", error);
      }
    }
    await watchdog.work(number("WORK_MS", 50));
    // Blocks the one thread, and the watchdog with it, as a garbage collector would.
    const until = nowNs() + BigInt(number("PAUSE_MS", 0)) * 1000000n;
    while (nowNs() < until);
    if (await watchdog.isLost()) {
      say("lost", { ...hold, reason: watchdog.reason });
      if (this.stops) return true;
    }
    if ("token" in hold && setting("FENCE", "on") === "on") headers["X-Fence-Token"] = String(hold.token);
    const body = JSON.stringify({ count: count + 1, by: this.task.worker, token: hold.token });
    // After the last look: what happens at this gate, no lock can see.
    await gate("before_write", round);
    const hash = createHash("sha256").update(body).digest("hex").slice(0, 16);
    say("writing", { ...hold, owner, body: hash });
    try {
      const { status, answer } = await ask("PUT", this.key, body, headers, [200, 409]);
      if (status === 200) say("write_accepted", { ...hold, owner, position: answer.position });
      else say("write_rejected", { round, key: this.key, owner, seen: answer.seen, got: answer.got });
    } catch (error) {
      return failed(round, "write", error);
    }
    return true;
  }
}

/** Renews at a third of the TTL if the task says so, and knows whether the lock is lost. */
class Watchdog {
  constructor(worker, hold, ttlNs) {
    Object.assign(this, { worker, hold, ttlNs, reason: null, renewal: null });
    if (setting("RENEW", "false") === "true") {
      this.timer = setInterval(() => (this.renewal ??= this.renew()), worker.task.ttlMs / 3);
    }
  }

  async renew() {
    const askedNs = nowNs();
    try {
      if ((await this.worker.lock.renew()) === false) {
        this.reason = "the renewal was refused";
        clearInterval(this.timer);
      } else if (this.reason === null) {
        say("renewed", { ...this.hold, valid_until_ns: askedNs + this.ttlNs });
      }
    } catch (error) {
      // Whether it took effect is unknown: try again.
      console.error("renew:", error);
    }
    this.renewal = null;
  }

  async isLost() {
    if (this.reason === null && this.worker.lock.held) {
      try {
        if (!(await this.worker.lock.held())) this.reason = "the lock is not ours any more";
      } catch (error) {
        this.reason = `the lock cannot be looked at: ${error}`;
      }
      if (this.reason !== null) clearInterval(this.timer);
    }
    return this.reason !== null;
  }

  /** Works, and stops early once the lock is lost. */
  async work(ms) {
    const end = performance.now() + ms;
    while (performance.now() < end && !(this.worker.stops && (await this.isLost()))) {
      await sleep(Math.min(Math.max(end - performance.now(), 0), this.worker.task.ttlMs / 4));
    }
  }

  async end() {
    clearInterval(this.timer);
    // A renewal under way would come after the release.
    await this.renewal;
  }
}

function countIn(value) {
  try {
    return Number.parseInt(JSON.parse(value).count) || 0;
  } catch {
    return 0;
  }
}

/** Sends one request on a connection of its own: nothing repeats it. */
function ask(method, key, body, headers, expected) {
  return new Promise((resolve, reject) => {
    const address = setting("RESOURCE") + "/r/" + encodeURIComponent(key);
    const length = body === null ? {} : { "Content-Length": Buffer.byteLength(body) };
    const request = http.request(address, { method, headers: { ...headers, ...length }, agent: false });
    const connecting = setTimeout(() => request.destroy(new Error("no connection")), CONNECT_MS);
    const answering = setTimeout(() => request.destroy(new Error("no answer")), ANSWER_MS);
    const over = () => [connecting, answering].forEach(clearTimeout);
    request.on("socket", (socket) => socket.on("connect", () => clearTimeout(connecting)));
    request.on("error", (error) => (over(), reject(error)));
    request.on("response", (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", (error) => (over(), reject(error)));
      response.on("end", () => {
        over();
        const [status, text] = [response.statusCode, Buffer.concat(parts).toString()];
        if (!expected.includes(status)) return reject(new Error(`${status}: ${text}`));
        try {
          resolve({ status, answer: JSON.parse(text) });
        } catch (error) {
          reject(error);
        }
      });
    });
    request.end(body ?? undefined);
  });
}

/** Numbers of nanoseconds are too large for JSON.stringify, and are written as they are. */
function say(event, fields) {
  const written = (name, value) => (typeof value === "bigint" ? `@${value}@` : value);
  const line = JSON.stringify({ at_ns: nowNs(), event, ...fields }, written);
  writeSync(1, line.replace(/"@(\d+)@"/g, "$1") + "\n");
}

function failed(round, during, error) {
  say("failed", { round, during, error: String(error) });
  return false;
}

const opened = new Map();

/** The promise that a gate is open, and what opens it. */
function opening(gate, round) {
  const name = `${gate} ${round}`;
  if (!opened.has(name)) {
    const it = {};
    it.promise = new Promise((resolve) => (it.open = resolve));
    opened.set(name, it);
  }
  return opened.get(name);
}

async function gate(gate, round) {
  if (!setting("GATES", "").split(",").includes(gate)) return;
  say("at_gate", { gate, round });
  await opening(gate, round).promise;
}

function listen() {
  const lines = readline.createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    try {
      const order = JSON.parse(line);
      if (order.go) opening(order.go, order.round).open();
    } catch (error) {
      console.error(`ignored ${line} on stdin:`, error);
    }
  });
  // The harness is gone, and so are we.
  lines.on("close", () => process.exit(0));
}
