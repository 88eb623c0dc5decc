// A fencepost worker in Go, without dependencies: copy this file beside your lock, which is
//
//	type Lock interface {
//		Acquire(owner string, timeout time.Duration) (token uint64, granted bool, err error)
//		Release() (outcome string, err error) // released, expired, superseded or unknown
//	}
//
// and optionally Renew() and Held(), each (bool, error): is the lock still ours? Call
// Run(newLock, Offers{...}) in main. An error is reported as a failed step. The protocol is in
// docs/contract.md of fencepost.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Lock is what you write. One value plays all rounds of a worker.
type Lock interface {
	// Acquire asks for the lock. If it is not granted now, it is asked again until the timeout.
	Acquire(owner string, timeout time.Duration) (token uint64, granted bool, err error)
	Release() (outcome string, err error)
}

// Renewer is a Lock that can be prolonged; false: it is not ours any more.
type Renewer interface{ Renew() (bool, error) }

// Holder is a Lock that knows whether it is still held.
type Holder interface{ Held() (bool, error) }

// Task is what a lock needs to know.
type Task struct {
	Key, LockKey, Backend, Worker string
	TTL                           time.Duration
	Endpoints                     []string
}

// Offers says what your lock does: the values of settings that it can do alone, and whether its
// grants have no fencing token.
type Offers struct {
	Only     map[string][]string
	NoTokens bool
}

// Run plays the task in the environment, and ends the process.
func Run(newLock func(Task) (Lock, error), offers Offers) {
	// The kernel ignores SIGTERM for pid 1 unless somebody listens.
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	go func() { <-terminate; os.Exit(0) }()
	con := &console{stopsAt: map[string]bool{}, opened: map[string]bool{}}
	con.changed = sync.NewCond(&con.mutex)
	for _, gate := range strings.Split(os.Getenv("FENCEPOST_GATES"), ",") {
		con.stopsAt[gate] = true
	}
	go con.listen()
	task := Task{
		Key:       setting("KEY", "account-42"),
		Backend:   setting("BACKEND", "redis"),
		Worker:    setting("WORKER", "worker"),
		TTL:       millis("TTL_MS", 2000),
		Endpoints: strings.Split(setting("ENDPOINTS", ""), ","),
	}
	task.LockKey = setting("LOCK_KEY", "lock:"+task.Key)
	lock, err := newLock(task)
	if err != nil {
		con.refuse(err.Error())
	}
	only := map[string][]string{
		"FENCEPOST_WAIT": {"spin"}, "FENCEPOST_RELEASE": {"compare-and-delete"},
		"FENCEPOST_FENCE_FLOOR": {"none"}, "FENCEPOST_NESTED": {"1"},
	}
	_, renews := lock.(Renewer)
	_, looks := lock.(Holder)
	if !renews {
		only["FENCEPOST_RENEW"] = []string{"false"}
	}
	for name, values := range offers.Only {
		only[name] = values
	}
	for name, values := range only {
		asked, isSet := os.LookupEnv(name)
		if isSet && !contains(values, asked) {
			con.refuse(fmt.Sprintf("this worker has %s=%s alone, and not %s", name, strings.Join(values, " or "), asked))
		}
	}
	if !strings.HasPrefix(setting("RESOURCE", ""), "http:") {
		con.refuse("this worker writes to an HTTP resource alone")
	}
	lacks := []string{}
	if offers.NoTokens {
		lacks = append(lacks, "token")
	}
	if !renews && !looks {
		lacks = append(lacks, "lost")
	}
	w := &worker{task: task, lock: lock, con: con, noTokens: offers.NoTokens}
	w.playAll(lacks, only)
	os.Exit(0)
}

type fields = map[string]any

type worker struct {
	task     Task
	lock     Lock
	con      *console
	noTokens bool
	// Held while the whole worker stands still, as a garbage collector would make it.
	world sync.Mutex
}

func (w *worker) playAll(lacks []string, only map[string][]string) {
	w.con.say("ready", fields{"lacks": lacks, "only": only})
	w.con.gate("start", 0)
	lasting, started := millis("FOR_MS", 0), nowNs()
	rounds := ^uint64(0)
	if said := setting("ROUNDS", ""); said != "" {
		rounds, _ = strconv.ParseUint(said, 10, 64)
	} else if lasting == 0 {
		rounds = 1
	}
	played := uint64(0)
	for played < rounds && (lasting == 0 || nowNs()-started < uint64(lasting)) {
		played++
		if !w.play(played) {
			time.Sleep(100 * time.Millisecond)
		}
	}
	w.con.say("done", fields{"rounds": played})
}

// play returns whether every step had an answer.
func (w *worker) play(round uint64) bool {
	w.con.say("acquiring", fields{"round": round, "key": w.task.Key})
	owner := newOwner()
	token, askedNs, err := w.acquire(owner)
	if err != nil {
		return w.con.failed(round, "acquire", err)
	}
	hold := fields{"round": round, "key": w.task.Key}
	if !w.noTokens {
		hold["token"] = token
	}
	w.con.say("acquired", with(hold, fields{"owner": owner, "valid_until_ns": askedNs + uint64(w.task.TTL)}))
	dog := &watchdog{worker: w, hold: hold}
	dog.start()
	w.con.gate("after_acquire", round)
	answered := w.readWorkWrite(round, hold, owner, dog)
	w.con.gate("before_release", round)
	dog.end()
	w.con.say("releasing", hold)
	outcome, err := w.lock.Release()
	if err != nil {
		return w.con.failed(round, "release", err)
	}
	w.con.say("released", with(hold, fields{"outcome": outcome}))
	return answered
}

func (w *worker) acquire(owner string) (uint64, uint64, error) {
	limit := millis("ACQUIRE_TIMEOUT_MS", 30000)
	deadline := time.Now().Add(limit)
	for {
		askedNs := nowNs()
		token, granted, err := w.lock.Acquire(owner, time.Until(deadline))
		if err != nil || granted {
			return token, askedNs, err
		}
		if time.Now().After(deadline) {
			return 0, 0, fmt.Errorf("not granted within %v", limit)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *worker) readWorkWrite(round uint64, hold fields, owner string, dog *watchdog) bool {
	headers := map[string]string{"X-Owner": owner}
	count := 0
	if setting("READS", "true") == "true" {
		position, read, err := w.read()
		if err != nil {
			return w.con.failed(round, "read", err)
		}
		headers["X-Based-On"], count = strconv.FormatUint(position, 10), read
	}
	stops := setting("ON_LOST", "stop") == "stop"
	dog.work(millis("WORK_MS", 50), stops)
	if pause := millis("PAUSE_MS", 0); pause > 0 {
		w.world.Lock()
		time.Sleep(pause)
		w.world.Unlock()
	}
	if reason := dog.lost(); reason != "" {
		w.con.say("lost", with(hold, fields{"reason": reason}))
		if stops {
			return true
		}
	}
	token, hasToken := hold["token"]
	if hasToken && setting("FENCE", "on") == "on" {
		headers["X-Fence-Token"] = fmt.Sprint(token)
	}
	body, _ := json.Marshal(fields{"count": count + 1, "by": w.task.Worker, "token": token})
	hash := sha256.Sum256(body)
	// After the last look: what happens at this gate, no lock can see.
	w.con.gate("before_write", round)
	w.con.say("writing", with(hold, fields{"owner": owner, "body": hex.EncodeToString(hash[:8])}))
	var answer struct{ Position, Seen, Got uint64 }
	status, err := w.ask("PUT", body, headers, &answer, 200, 409)
	if err != nil {
		return w.con.failed(round, "write", err)
	}
	if status == 200 {
		w.con.say("write_accepted", with(hold, fields{"owner": owner, "position": answer.Position}))
	} else {
		w.con.say("write_rejected", fields{"round": round, "key": w.task.Key, "owner": owner, "seen": answer.Seen, "got": answer.Got})
	}
	return true
}

// read returns the position of the value and the count in it, both 0 where there is none yet.
func (w *worker) read() (uint64, int, error) {
	var stored struct {
		Position uint64
		Value    string
	}
	status, err := w.ask("GET", nil, nil, &stored, 200, 404)
	if err != nil || status == 404 {
		return 0, 0, err
	}
	var value struct{ Count int }
	// A value that is none of ours counts as 0.
	_ = json.Unmarshal([]byte(stored.Value), &value)
	return stored.Position, value.Count, nil
}

// ask sends one request on a connection of its own: nothing repeats it.
func (w *worker) ask(method string, body []byte, headers map[string]string, answer any, expected ...int) (int, error) {
	address := setting("RESOURCE", "") + "/r/" + url.PathEscape(w.task.Key)
	ctx, cancel := context.WithTimeout(context.Background(), 35*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialer.DialContext, ResponseHeaderTimeout: 30 * time.Second}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	for _, status := range expected {
		if response.StatusCode == status {
			return status, json.Unmarshal(text, answer)
		}
	}
	return 0, fmt.Errorf("%s: %s", response.Status, text)
}

// watchdog renews at a third of the TTL if the task says so, and knows whether the lock is lost.
type watchdog struct {
	worker *worker
	hold   fields
	mutex  sync.Mutex
	reason string
	stop   chan struct{}
	done   chan struct{}
}

func (d *watchdog) start() {
	d.stop, d.done = make(chan struct{}), make(chan struct{})
	renewer, can := d.worker.lock.(Renewer)
	if !can || setting("RENEW", "false") != "true" {
		close(d.done)
		return
	}
	go func() {
		defer close(d.done)
		ticker := time.NewTicker(d.worker.task.TTL / 3)
		defer ticker.Stop()
		for {
			select {
			case <-d.stop:
				return
			case <-ticker.C:
				if !d.renew(renewer) {
					return
				}
			}
		}
	}()
}

// renew returns whether it is worth another try.
func (d *watchdog) renew(renewer Renewer) bool {
	d.worker.world.Lock()
	defer d.worker.world.Unlock()
	askedNs := nowNs()
	isOurs, err := renewer.Renew()
	if err != nil {
		// Whether it took effect is unknown: try again.
		fmt.Fprintln(os.Stderr, "renew:", err)
		return true
	}
	if !isOurs {
		d.mutex.Lock()
		d.reason = "the renewal was refused"
		d.mutex.Unlock()
		return false
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.reason != "" {
		// It was found lost in the meantime.
		return false
	}
	d.worker.con.say("renewed", with(d.hold, fields{"valid_until_ns": askedNs + uint64(d.worker.task.TTL)}))
	return true
}

func (d *watchdog) lost() string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if holder, can := d.worker.lock.(Holder); can && d.reason == "" {
		held, err := holder.Held()
		if err != nil {
			d.reason = "the lock cannot be looked at: " + err.Error()
		} else if !held {
			d.reason = "the lock is not ours any more"
		}
	}
	return d.reason
}

// work stops early once the lock is lost.
func (d *watchdog) work(lasting time.Duration, stops bool) {
	end := time.Now().Add(lasting)
	for time.Now().Before(end) && !(stops && d.lost() != "") {
		slice := d.worker.task.TTL / 4
		if left := time.Until(end); left < slice {
			slice = left
		}
		time.Sleep(slice)
	}
}

func (d *watchdog) end() {
	close(d.stop)
	// A renewal under way would come after the release.
	<-d.done
}

// console has events on stdout, gates and questions on stdin.
type console struct {
	stopsAt, opened map[string]bool
	mutex, speaking sync.Mutex
	changed         *sync.Cond
}

func (c *console) say(event string, more fields) {
	c.speaking.Lock()
	defer c.speaking.Unlock()
	// The time is taken under the lock, so that the lines are in its order.
	line, _ := json.Marshal(with(more, fields{"at_ns": nowNs(), "event": event}))
	os.Stdout.Write(append(line, '\n'))
}

func (c *console) failed(round uint64, during string, err error) bool {
	c.say("failed", fields{"round": round, "during": during, "error": err.Error()})
	return false
}

func (c *console) refuse(reason string) {
	c.say("refused", fields{"reason": reason})
	os.Exit(0)
}

// gate waits for the go, which may have come already.
func (c *console) gate(gate string, round uint64) {
	if !c.stopsAt[gate] {
		return
	}
	c.say("at_gate", fields{"gate": gate, "round": round})
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for !c.opened[fmt.Sprint(gate, round)] {
		c.changed.Wait()
	}
}

func (c *console) listen() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var order struct {
			Go, Tell string
			Round    uint64
		}
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			fmt.Fprintf(os.Stderr, "ignored %q on stdin: %v\n", lines.Text(), err)
		} else if order.Go != "" {
			c.mutex.Lock()
			c.opened[fmt.Sprint(order.Go, order.Round)] = true
			c.mutex.Unlock()
			c.changed.Broadcast()
		} else if order.Tell == "clock" {
			// These two are read as everybody reads them, with every skew.
			c.say("clock", fields{"realtime_ns": time.Now().UnixNano(), "monotonic_ns": monotonicNs()})
		}
	}
	// The harness is gone, and so are we, but not in the middle of a line.
	c.speaking.Lock()
	os.Exit(0)
}

// nowNs is CLOCK_MONOTONIC by the system call itself: the vDSO, which Go's own clock uses, follows
// a skew, and the times of events must not.
func nowNs() uint64 {
	var now syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0)
	if errno != 0 {
		panic(errno)
	}
	return uint64(now.Nano())
}

// monotonicNs is the clock that Go programs see; it has no zero of its own.
func monotonicNs() int64 {
	return int64(startedNs) + int64(time.Since(started))
}

var started, startedNs = time.Now(), nowNs()

func newOwner() string {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		panic(err)
	}
	return hex.EncodeToString(id)
}

func setting(name, otherwise string) string {
	if value, isSet := os.LookupEnv("FENCEPOST_" + name); isSet {
		return value
	}
	return otherwise
}

func millis(name string, otherwise int64) time.Duration {
	value, err := strconv.ParseInt(setting(name, ""), 10, 64)
	if err != nil {
		value = otherwise
	}
	return time.Duration(value) * time.Millisecond
}

func with(these, more fields) fields {
	all := fields{}
	for _, part := range []fields{these, more} {
		for name, value := range part {
			all[name] = value
		}
	}
	return all
}

func contains(values []string, wanted string) bool {
	for _, value := range values {
		if value == wanted {
			return true
		}
	}
	return false
}
