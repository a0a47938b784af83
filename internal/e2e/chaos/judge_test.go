package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// calm waits until all servers have the same, and reads the registers for the last time.
func (w *world) calm() {
	whole := w.eventually(time.Minute, w.whole)
	if !whole {
		w.breach(promiseWrites, "a minute after the last fault was healed the servers are not whole: %s", w.unwhole())
	}
	time.Sleep(time.Second) // clients see that it is over
}

// judge compares what clients saw.
func (w *world) judge() {
	for i, h := range w.histories {
		at := w.now()
		value, _, err := w.contended[i].read(i, consistent)
		if err != nil {
			w.breach(promiseLinearizable, "the last read of %s: %v", h.name, err)
			continue
		}
		h.add(step{outcome: observed, value: value, call: at, end: w.now()})
		n := map[outcome]int{}
		for _, s := range h.steps {
			n[s.outcome]++
		}
		switch linearizable(h.steps, time.Minute) {
		case porcupine.Illegal:
			w.breach(promiseLinearizable, "%s is not linearizable", h.name)
		case porcupine.Unknown:
			w.say("%s: nobody could tell within a minute whether it is linearizable", h.name)
		default:
		}
		w.figure("%s: %d reads, %d writes, %d refuted, %d of which it is not known", h.name, n[observed], n[applied], n[refuted], n[unknown])
	}
	w.finish()
	w.checkWrites()
	w.checkClaims()
	w.checkEvents()
	w.checkSteady()
	w.checkNodes()
	w.checkMachines()
	w.checkLogs()
	w.checkFaults()
	w.reckon()
}

// checkLogs looks for what agents must never say.
func (w *world) checkLogs() {
	for _, h := range append(append([]*host{}, w.servers...), w.nodes...) {
		text, err := os.ReadFile(h.output())
		if err != nil {
			w.breach(true, "what %s said: %v", h.name, err)
			continue
		}
		for line := range bytes.Lines(text) {
			for _, bad := range []string{"panic:", "fatal error:", "invariant"} {
				if bytes.Contains(line, []byte(bad)) {
					w.breach(promiseClaims || !bytes.Contains(line, []byte("handed out once")), "%s said: %s", h.name, bytes.TrimSpace(line))
				}
			}
		}
	}
}

// reckon tells how long no write was acknowledged, by kind of fault, and how long it took until one was after the
// leader's.
func (w *world) reckon() {
	acks := w.acks()
	silent := map[string][]time.Duration{}
	for i, x := range w.windows {
		until := x.to + 5*time.Second
		if i+1 < len(w.windows) { // what the next fault does is its own
			until = min(until, w.windows[i+1].from)
		}
		name := string(x.kind)
		switch {
		case x.leader && len(x.servers) == 1:
			name += ", the leader"
		case len(x.servers) == 1 && len(x.nodes) == 0:
			name += ", a follower"
		}
		silent[name] = append(silent[name], longest(acks, x.from, until))
	}
	names := []string{}
	for name := range silent {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w.figure("no write acknowledged: %s, p50 and worst of %d: %s", name, len(silent[name]), spread(silent[name]))
	}
	for _, k := range kinds {
		if list := w.mended[k]; len(list) > 0 {
			w.figure("the servers were whole again after it was healed: %s, p50 and worst of %d: %s", k, len(list), spread(list))
		}
	}
	w.reckonTakeovers(acks)
}

// slowTakeover is how long a takeover may last at most (issue 15); longer ones are told with their time, to be looked up in what the
// servers said.
const slowTakeover = 5 * time.Second

// reckonTakeovers tells how long it took until a write was acknowledged after a fault of the leader, by kind. After a majority was
// killed that is counted from when it was started again: before, nobody can acknowledge anything.
func (w *world) reckonTakeovers(acks []number) {
	after, killed := map[kind][]time.Duration{}, []time.Duration(nil)
	for _, x := range w.windows {
		from := x.from
		if x.kind == killMajority {
			from = x.to
		} else if !x.leader || len(x.servers) != 1 || len(x.nodes) > 0 {
			continue
		}
		at := slices.IndexFunc(acks, func(a number) bool { return a.call > from })
		if at < 0 {
			continue
		}
		took := acks[at].end - from
		after[x.kind] = append(after[x.kind], took)
		if x.kind == killServer || x.kind == tornLog || x.kind == serverClock {
			killed = append(killed, took)
		}
		if took > slowTakeover {
			w.say("the first write after %s at %.2f s was acknowledged %.2f s later", x.hit, from.Seconds(), took.Seconds())
		}
	}
	for _, k := range kinds {
		if list := after[k]; len(list) > 0 {
			w.figure("first write acknowledged after the leader's fault: %s, p50 and worst of %d: %s", k, len(list), spread(list))
		}
	}
	w.figure("first write acknowledged after the leader was killed, p50 and worst of %d: %s", len(killed), spread(killed))
}

// longest is the longest time between the times in which nothing was acknowledged.
func longest(acks []number, from, to time.Duration) (most time.Duration) {
	last := from
	for _, a := range acks {
		if a.end < from {
			continue
		}
		if a.end > to {
			break
		}
		most = max(most, a.end-last)
		last = a.end
	}
	return max(most, to-last)
}

// spread is the median and the largest.
func spread(list []time.Duration) string {
	if len(list) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(list))
	return fmt.Sprintf("%.2f s, %.2f s", sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds())
}

// report tells what came of it.
func (w *world) report() {
	w.timeline.mu.Lock()
	breaches, missing, figures := slices.Clone(w.breaches), slices.Clone(w.missing), slices.Clone(w.figures)
	w.timeline.mu.Unlock()
	if *tell || w.t.Failed() || len(breaches) > 0 {
		w.t.Log(w.timeline.text())
	}
	w.t.Logf("seed %d\n  %s", *seed, strings.Join(figures, "\n  "))
	if len(missing) > 0 {
		w.t.Logf("not promised yet, and seen:\n  %s", few(missing))
	}
	w.keepLogs()
	if len(breaches) > 0 {
		w.t.Errorf("seed %d: promises that were broken:\n  %s", *seed, few(breaches))
	}
}

// keepLogs copies what each agent said, where that is asked for.
func (w *world) keepLogs() {
	if *logs == "" {
		return
	}
	for _, h := range slices.Concat(w.servers, w.nodes) {
		text, err := os.ReadFile(h.output())
		if err == nil {
			err = os.WriteFile(filepath.Join(*logs, h.name+".log"), text, 0o600)
		}
		if err != nil {
			w.t.Logf("keeping what %s said: %v", h.name, err)
		}
	}
}
