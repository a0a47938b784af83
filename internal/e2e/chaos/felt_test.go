package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A fault that does nothing finds nothing. So each is looked at while it is there, and counted if it does what it is to do. A kind of
// which none did fails the run.

// felt returns why the fault does not do what it is to do.
func (w *world) felt(h hit) error {
	hosts := slices.Concat(h.servers, h.nodes)
	switch h.kind {
	case killServer, killNode, killMajority, serverClock:
		return all(hosts, (*host).isGone)
	case tornLog:
		return errors.Join(all(hosts, (*host).isGone), all(hosts, (*host).isTorn))
	case pauseServer, pauseNode, slowServer:
		return all(hosts, w.isStopped)
	case fullDisk:
		return all(hosts, (*host).isFull)
	case serverDate, nodeDate:
		return all(hosts, (*host).hasDate)
	case cutNodeOne: // between it and a follower there are seconds of silence
		return errors.Join(h.servers[0].cannotReach(h.nodes[0]), w.dropped())
	default:
		return w.dropped()
	}
}

// cannotReach knocks where nobody listens: who is reached refuses.
func (h *host) cannotReach(other *host) error {
	knock := "true > /dev/tcp/" + other.address + "/1"
	out, err := exec.Command("nsenter", "--net=/run/netns/"+space(h.name), "timeout", "0.3", "bash", "-c", knock).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 124 { // what timeout ends with
		return fmt.Errorf("%s reaches %s: %s", h.name, other.name, out)
	}
	return nil
}

// feltAfter is felt of what is only done by healing it.
func (w *world) feltAfter(h hit) error {
	if h.kind != serverClock {
		return nil
	}
	var mine, its string
	if !w.eventually(10*time.Second, func() bool { // it is started by commands that take each other's place
		mine, _ = os.Readlink("/proc/self/ns/time")
		its, _ = os.Readlink(h.servers[0].proc("ns/time")) // it may not have begun
		return its != "" && its != mine
	}) {
		return fmt.Errorf("its time since the boot is everybody's: %q and %q", its, mine)
	}
	return nil
}

// count notes whether the fault did what it is to do.
func (w *world) count(h hit, felt error) {
	if felt != nil {
		w.say("  it was not felt: %v", felt)
		return
	}
	w.injected[h.kind]++
}

// checkFaults tells how many faults of each kind did what they are to do.
func (w *world) checkFaults() {
	drawn := map[kind]int{}
	for _, x := range w.windows {
		drawn[x.kind]++
	}
	for _, k := range chosen() {
		w.figure("injected: %s: %d of %d", k, w.injected[k], drawn[k])
		if w.injected[k] == 0 {
			w.breach(true, "no fault of the kind %q did anything", k)
		}
	}
}

// proc is a file of the agent's process.
func (h *host) proc(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return filepath.Join("/proc", strconv.Itoa(h.agent.Process.Pid), name)
}

func (h *host) isGone() error {
	if err := h.signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(errors.New("its process lives"), err)
	}
	return nil
}

// isStopped looks for a while: who is slow is stopped most of the time.
func (w *world) isStopped(h *host) error {
	var state string
	if !w.eventually(2*time.Second, func() bool {
		text, _ := os.ReadFile(h.proc("stat")) // else it is not stopped
		_, state, _ = strings.Cut(string(text), ") ")
		return strings.HasPrefix(state, "T")
	}) {
		return fmt.Errorf("its process is not stopped: %s", state)
	}
	return nil
}

func (h *host) isFull() error {
	var fs unix.Statfs_t
	if err := unix.Statfs(h.data(), &fs); err != nil {
		return err
	}
	if free := fs.Bavail * uint64(fs.Bsize); free > 1<<20 { // it may have made a little room
		return fmt.Errorf("its disk has %d bytes free", free)
	}
	return nil
}

// isTorn looks for what tearLog wrote.
func (h *host) isTorn() error {
	f, err := os.Open(filepath.Join(h.data(), "server", "raft", "raft.db"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	torn := 0
	for root := range int64(2) {
		b := make([]byte, rootEnd-rootTx)
		if _, err := f.ReadAt(b, root*int64(os.Getpagesize())+rootTx); err != nil {
			return err
		}
		if bytes.Equal(b, bytes.Repeat([]byte{0xa5}, len(b))) {
			torn++
		}
	}
	if torn != 1 {
		return fmt.Errorf("%d of its log's roots are torn", torn)
	}
	return nil
}

// hasDate sees that the program reads the date that is written.
func (h *host) hasDate() error {
	maps, err := os.ReadFile(h.proc("maps"))
	if err == nil && !bytes.Contains(maps, []byte(h.date())) {
		err = errors.New("its program knows of no other date")
	}
	return err
}

// dropped sees that links dropped packets.
func (w *world) dropped() error {
	for _, h := range slices.Concat(w.servers, w.nodes) {
		out, err := exec.Command("nsenter", "--net=/run/netns/"+space(h.name), "iptables", "-w", "-nvxL", "INPUT").Output()
		if err != nil {
			return fmt.Errorf("%s: %w", h.name, err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 2 && f[2] == "DROP" && f[0] != "0" {
				return nil
			}
		}
	}
	return errors.New("no link dropped a packet")
}
