// A lock on one Redis, by hand: what the kit leaves to you.
package main

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	acquire = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('incr',KEYS[2]) end return 0"
	release = "local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1"
	renew   = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"
	held    = "return redis.call('get',KEYS[1])==ARGV[1] and 1 or 0"
)

type redisLock struct {
	task  Task
	owner string
}

func (l *redisLock) Acquire(owner string, timeout time.Duration) (uint64, bool, error) {
	l.owner = owner
	token, err := l.eval(acquire)
	return token, token > 0, err
}

func (l *redisLock) Release() (string, error) {
	outcome, err := l.eval(release)
	return []string{"released", "expired", "superseded"}[outcome], err
}

func (l *redisLock) Renew() (bool, error) {
	renewed, err := l.eval(renew)
	return renewed == 1, err
}

func (l *redisLock) Held() (bool, error) {
	held, err := l.eval(held)
	return held == 1, err
}

// eval runs a script that answers with a number.
func (l *redisLock) eval(script string) (uint64, error) {
	words := []string{"EVAL", script, "2", l.task.LockKey, "fence:" + l.task.Key, l.owner, fmt.Sprint(l.task.TTL.Milliseconds())}
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	redis, err := net.DialTimeout("tcp", l.task.Endpoints[0], 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer redis.Close()
	redis.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err = redis.Write([]byte(request)); err != nil {
		return 0, err
	}
	answer, err := bufio.NewReader(redis).ReadString('\n')
	if err != nil {
		return 0, err
	}
	if !strings.HasPrefix(answer, ":") {
		return 0, fmt.Errorf("Redis answers %q", answer)
	}
	return strconv.ParseUint(strings.TrimSpace(answer[1:]), 10, 64)
}

func main() {
	Run(func(task Task) (Lock, error) { return &redisLock{task: task}, nil }, Offers{
		Only: map[string][]string{"FENCEPOST_BACKEND": {"redis"}},
	})
}
