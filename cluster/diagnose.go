package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Seen is a server as it was asked.
type Seen struct {
	Name   string // NAME.REGION
	Status string // of its gossip: alive, leaving, left, failed
	Voter  bool
	// Checkup is its answer; nil if there was none, and then Problem says why.
	Checkup        *Checkup
	Problem        string
	Sent, Received time.Time // of the question and the answer, by the clock of who asked
}

// States of a finding.
const (
	OK     = "ok"
	Weak   = "weak"   // it works, and will not for long or not through the next failure
	Broken = "broken" // it does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string
	State  string // OK, Weak or Broken
	Server string // its name; "" if it is about all
	Says   string
}

// Examination is what was found of the servers of a region.
type Examination struct {
	State    string // the worst of the findings: OK, Weak or Broken
	Findings []Finding
}

// What a cluster needs; beyond is Weak, or Broken where both are given.
const (
	mostSkew      = 500 * time.Millisecond
	badSkew       = 30 * time.Second
	slowWrite     = 50 * time.Millisecond  // on average: each write of the cluster takes as long
	badWrite      = 250 * time.Millisecond // half of what a leader may be silent
	longestWrite  = time.Second
	soonEnds      = 30 * 24 * time.Hour
	mostBehind    = 250 // entries; autopilot's default
	silentToLong  = 2 * time.Second
	settingsNamed = 5
)

// Diagnose says what is well and what is wrong with the servers of a region. What is wrong with all comes first.
func Diagnose(seen []Seen, now time.Time) []Finding {
	d := &diagnosis{seen: seen, now: now}
	for _, s := range seen {
		if s.Checkup != nil {
			d.answered = append(d.answered, s)
		}
	}
	d.leader()
	d.quorum()
	d.one("cluster", "All belong to one cluster.", func(c *Checkup) string { return c.Cluster },
		"the servers belong to different clusters, which never mix: start those of all but one with an empty data folder", Broken)
	d.clocks()
	d.one("version", "All run the same version.", func(c *Checkup) string { return c.Version },
		"the servers run different versions: finish the upgrade", Weak)
	d.settings()
	for _, s := range seen {
		d.server(s)
	}
	return d.findings
}

// Worst is the worst state among the findings.
func Worst(list []Finding) string {
	worst := OK
	for _, f := range list {
		if f.State == Broken || f.State == Weak && worst == OK {
			worst = f.State
		}
	}
	return worst
}

type diagnosis struct {
	seen, answered []Seen
	now            time.Time
	findings       []Finding
}

func (d *diagnosis) say(check, state, server, format string, args ...any) {
	d.findings = append(d.findings, Finding{check, state, server, fmt.Sprintf(format, args...)})
}

// leader: those that answer name one, and the same.
func (d *diagnosis) leader() {
	named := map[string][]string{}
	for _, s := range d.answered {
		named[s.Checkup.Leader] = append(named[s.Checkup.Leader], s.Name)
	}
	silent := named[""]
	delete(named, "")
	switch {
	case len(named) == 0:
		d.say("leader", Broken, "", "nobody leads: nothing is written, placed or claimed until a majority of the voters speak with each other")
	case len(named) > 1:
		d.say("leader", Weak, "", "the servers name different leaders: an election may be under way, or they do not reach each other")
	case len(silent) > 0:
		d.say("leader", Weak, "", "%s knows no leader, others do: it does not reach them", strings.Join(silent, ", "))
	default:
		for id := range named {
			d.say("leader", OK, "", "%s leads.", d.nameOf(id))
		}
	}
}

func (d *diagnosis) nameOf(id string) string {
	for _, s := range d.answered {
		if s.Checkup.ID == id {
			return s.Name
		}
	}
	return id
}

// quorum: how many of those that vote can fail.
func (d *diagnosis) quorum() {
	voters, answer := 0, 0
	for _, s := range d.seen {
		if s.Voter {
			voters++
			if s.Checkup != nil {
				answer++
			}
		}
	}
	need := voters/2 + 1
	switch borne := answer - need; {
	case voters == 0:
		d.say("quorum", Broken, "", "nobody votes, as far as the asked server knows")
	case borne < 0:
		d.say("quorum", Broken, "", "%d of %d voters answer, and %d are needed: start the others, or recover without them", answer, voters, need)
	case voters == 1:
		d.say("quorum", OK, "", "One server votes: nothing is written while it is down.")
	case borne == 0:
		d.say("quorum", Weak, "", "%d of %d voters answer: one more failure stops the cluster", answer, voters)
	default:
		d.say("quorum", OK, "", "%d of %d voters answer: %d can fail.", answer, voters, borne)
	}
}

// one: all say the same.
func (d *diagnosis) one(check, well string, of func(*Checkup) string, wrong, state string) {
	said := map[string][]string{}
	for _, s := range d.answered {
		said[of(s.Checkup)] = append(said[of(s.Checkup)], s.Name)
	}
	if len(said) <= 1 {
		d.say(check, OK, "", "%s", well)
		return
	}
	var parts []string
	for value, names := range said {
		parts = append(parts, fmt.Sprintf("%s on %s", cmp.Or(value, "none"), strings.Join(names, ", ")))
	}
	slices.Sort(parts)
	d.say(check, state, "", "%s (%s)", wrong, strings.Join(parts, "; "))
}

// clocks: how far apart they are at least, given how long the questions took.
func (d *diagnosis) clocks() {
	var worst time.Duration
	var pair [2]string
	for i, a := range d.answered {
		for _, b := range d.answered[i+1:] {
			x, y := a.offset(), b.offset()
			apart := (x - y).Abs() - a.doubt() - b.doubt()
			if apart > worst {
				worst, pair = apart, [2]string{a.Name, b.Name}
			}
		}
	}
	state := OK
	switch {
	case worst > badSkew:
		state = Broken
	case worst > mostSkew:
		state = Weak
	default:
		d.say("clocks", state, "", "The clocks agree.")
		return
	}
	d.say("clocks", state, "", "the clocks of %s and %s are at least %s apart: run a time service on both", pair[0], pair[1],
		worst.Round(time.Millisecond))
}

// offset is how far the server's clock is before that of who asked, to within doubt.
func (s Seen) offset() time.Duration {
	return s.Checkup.Now.Sub(s.Sent.Add(s.Received.Sub(s.Sent) / 2))
}

func (s Seen) doubt() time.Duration { return s.Received.Sub(s.Sent) / 2 }

// settings: what should be alike is.
func (d *diagnosis) settings() {
	values := map[string]map[string]bool{}
	for _, s := range d.answered {
		for key := range s.Checkup.Settings {
			values[key] = map[string]bool{}
		}
	}
	var differ []string
	for key, set := range values {
		for _, s := range d.answered {
			set[s.Checkup.Settings[key]] = true
		}
		if len(set) > 1 {
			differ = append(differ, key)
		}
	}
	if len(differ) == 0 {
		d.say("configuration", OK, "", "All are set alike.")
		return
	}
	slices.Sort(differ)
	more := ""
	if n := len(differ) - settingsNamed; n > 0 {
		differ, more = differ[:settingsNamed], fmt.Sprintf(" and %d more", n)
	}
	d.say("configuration", Weak, "", "the servers are set differently, so that it matters who leads: %s%s", strings.Join(differ, ", "), more)
}

// server: what is wrong with one. Nothing is said of what is well, but that it answers.
func (d *diagnosis) server(s Seen) {
	c := s.Checkup
	if c == nil {
		if s.Status != "left" {
			d.say("answers", Broken, s.Name, "it does not answer (%s): %s", cmp.Or(s.Status, "unknown"), cmp.Or(s.Problem, "no reason is known"))
		}
		return
	}
	before := len(d.findings)
	if c.Sick != "" {
		d.say("log", Broken, s.Name, "%s", c.Sick)
	}
	for _, id := range slices.Sorted(maps.Keys(c.Refused)) {
		d.say("peers", Broken, s.Name, "it sends server %s no entries of the log: %s. Start the right server there, or take that one out: "+
			"drover operator raft remove-peer -peer-id=%s", d.nameOf(id), c.Refused[id], id)
	}
	for _, id := range slices.Sorted(maps.Keys(c.Locked)) {
		d.say("keyring", Broken, s.Name, "what is encrypted or signed with it is not to be had here: %s", c.Locked[id])
	}
	switch w := c.Writes; {
	case w.Mean > badWrite:
		d.say("disk", Broken, s.Name, "a write of the log takes %s on average: the leader is taken for dead at such times", round(w.Mean))
	case w.Mean > slowWrite, w.Worst > longestWrite:
		d.say("disk", Weak, s.Name, "the disk under the log is slow: a write takes %s on average, and took %s at worst of %d",
			round(w.Mean), round(w.Worst), w.Count)
	}
	if head := d.head(); c.Applied+mostBehind < head {
		d.say("state", Weak, s.Name, "it is %d entries behind: it catches up, or is too slow", head-c.Applied)
	}
	if c.Leader != "" && c.Leader != c.ID && (c.LastContact > silentToLong || c.LastContact < 0) {
		d.say("state", Weak, s.Name, "it has not heard of the leader for %s", round(c.LastContact))
	}
	if len(c.Pools) > 0 {
		d.say("fleet", Weak, s.Name,
			"the fleet's pools are not those of its configuration: %s; run 'drover fleet apply' there, or change its file",
			strings.Join(c.Pools, "; "))
	}
	for _, cert := range c.Certificates {
		switch left := cert.Ends.Sub(d.now); {
		case left <= 0:
			d.say("certificate", Broken, s.Name, "%s ended on %s", cert.File, cert.Ends.UTC().Format(time.DateOnly))
		case left < soonEnds:
			d.say("certificate", Weak, s.Name, "%s ends on %s, in %d days: renew it, and have the agent reload",
				cert.File, cert.Ends.UTC().Format(time.DateOnly), int(left/(24*time.Hour)))
		}
	}
	if len(d.findings) == before {
		d.say("answers", OK, s.Name, "It answers and is caught up.")
	}
}

// head is the newest entry of which the leader, or else anybody, has heard.
func (d *diagnosis) head() (head uint64) {
	for _, s := range d.answered {
		if s.Checkup.ID == s.Checkup.Leader {
			return s.Checkup.Applied
		}
		head = max(head, s.Checkup.Applied)
	}
	return head
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
