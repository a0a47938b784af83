package chaos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/drover-project/drover/internal/e2e/program"
)

// host is an agent with its namespace, its folder and its configuration. Its agent comes and goes.
type host struct {
	name, address string
	number        int // among servers, or among nodes
	dir           string
	onEnd         func(text string) // of an agent that nobody ended

	mu      sync.Mutex // guards what follows
	agent   *exec.Cmd
	done    chan struct{} // closed when the agent has ended
	wanted  bool          // the agent is to run
	starts  int
	forward time.Duration // of what is counted since the boot
}

// start starts the agent, with the time since boot moved forward. It does not wait until it serves.
func (h *host) start(forward time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts++
	h.forward = forward
	out, err := os.OpenFile(h.output(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the agent has it
	line := []string{"--net=/run/netns/" + space(h.name)}
	if forward > 0 {
		seconds := fmt.Sprint(int(forward.Seconds()))
		line = append(line, "unshare", "-T", "--monotonic", seconds, "--boottime", seconds)
	}
	line = append(line, program.Binary, "agent", "-config", filepath.Join(h.dir, "agent.hcl"), "-log-level", "info")
	h.agent = exec.Command("nsenter", line...)
	h.agent.Env = append(os.Environ(), "TMPDIR="+h.dir, "DROVER_STEPPED_DATE="+h.date())
	h.agent.Stdout, h.agent.Stderr = out, out
	if err := h.agent.Start(); err != nil {
		return err
	}
	h.wanted, h.done = true, make(chan struct{})
	go h.await(h.agent, h.done) // ends with the agent
	return nil
}

// date is the file in which the agent has its error of the date in memory.
func (h *host) date() string { return filepath.Join(h.dir, "date") }

// stepDate has the agent's date be wrong by that much, at once. What durations are measured by goes on.
func (h *host) stepDate(by time.Duration) error {
	f, err := os.OpenFile(h.date(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(by/time.Second))), 0)
	return errors.Join(err, f.Close())
}

func (h *host) output() string { return filepath.Join(h.dir, "output") }

// await notices when the agent ends, and tells if nobody wanted that.
func (h *host) await(agent *exec.Cmd, done chan struct{}) {
	err := agent.Wait()
	h.mu.Lock()
	unwanted := h.wanted
	h.mu.Unlock()
	close(done)
	if unwanted {
		h.onEnd(fmt.Sprintf("%s ended by itself: %v\n%s", h.name, err, h.last(20)))
	}
}

// last is the end of what the agent said.
func (h *host) last(lines int) []byte {
	text, _ := os.ReadFile(h.output()) // what is not there was not said
	list := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Join(list[max(0, len(list)-lines):], []byte("\n"))
}

// signal sends one to the agent. Errors: os.ErrProcessDone.
func (h *host) signal(s syscall.Signal) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agent == nil {
		return os.ErrProcessDone
	}
	return h.agent.Process.Signal(s)
}

// kill ends the agent as a power cut would, and waits until it is gone.
func (h *host) kill() error {
	h.mu.Lock()
	h.wanted = false
	done := h.done
	h.mu.Unlock()
	if err := h.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if done != nil {
		<-done
	}
	return nil
}

// stop ends the agent in order, within the time, else kills it.
func (h *host) stop(patience time.Duration) error {
	h.mu.Lock()
	h.wanted = false
	done := h.done
	h.mu.Unlock()
	if done == nil {
		return nil
	}
	_ = h.signal(syscall.SIGCONT) // it may have ended
	_ = h.signal(syscall.SIGTERM)
	select {
	case <-done:
		return nil
	case <-time.After(patience):
		_ = h.signal(syscall.SIGQUIT) // which has it say what it does
		<-done
		return fmt.Errorf("%s did not stop within %v:\n%s", h.name, patience, h.last(200))
	}
}
