package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// well is three servers with which nothing is wrong.
func well(now time.Time) []Seen {
	var out []Seen
	for i := range 3 {
		id := fmt.Sprint("id", i)
		out = append(out, Seen{
			Name: fmt.Sprintf("s%d.global", i), Status: "alive", Voter: true, Sent: now, Received: now.Add(2 * time.Millisecond),
			Checkup: &Checkup{
				ID: id, Version: "1.0", Cluster: "c", Now: now.Add(time.Millisecond), Leader: "id0", LastIndex: 1000, Applied: 1000,
				Writes: Writes{100, 2 * time.Millisecond, 20 * time.Millisecond}, Settings: map[string]string{"server.a": "1", "server.b": "2"},
				Certificates: []Certificate{{"cert.pem", now.Add(365 * 24 * time.Hour)}},
			},
		})
	}
	return out
}

// Each thing that can be wrong is found, and nothing else with it.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	list := Diagnose(well(now), now)
	require.Equal(t, OK, Worst(list), "%v", list)
	for name, c := range map[string]struct {
		change func(s []Seen)
		state  string
		says   string
	}{
		"a server is down": {
			func(s []Seen) { s[2].Checkup, s[2].Problem, s[2].Status = nil, "connection refused", "failed" },
			Broken, "quorum: 2 of 3 voters answer: one more failure stops the cluster; " +
				"answers s2.global: it does not answer (failed): connection refused",
		},
		"a server that left": {func(s []Seen) { s[2].Checkup, s[2].Status, s[2].Voter = nil, "left", false }, Weak, "quorum: 2 of 2"},
		"a majority is down": {func(s []Seen) {
			s[0].Checkup, s[2].Checkup = nil, nil
			s[1].Checkup.Leader = ""
		}, Broken, "leader: nobody leads"},
		"two leaders":      {func(s []Seen) { s[1].Checkup.Leader = "id1" }, Weak, "leader: the servers name different leaders"},
		"one knows nobody": {func(s []Seen) { s[1].Checkup.Leader = "" }, Weak, "leader: s1.global knows no leader"},
		"nobody votes":     {func(s []Seen) { s[0].Voter, s[1].Voter, s[2].Voter = false, false, false }, Broken, "quorum: nobody votes"},
		"another cluster":  {func(s []Seen) { s[1].Checkup.Cluster = "other" }, Broken, "c on s0.global, s2.global; other on s1.global"},
		"clock is wrong":   {func(s []Seen) { s[1].Checkup.Now = now.Add(time.Hour) }, Broken, "clocks: the clocks of s0.global and s1.global"},
		"clock is off":     {func(s []Seen) { s[1].Checkup.Now = now.Add(-2 * time.Second) }, Weak, "clocks: the clocks of"},
		"slow answers":     {func(s []Seen) { s[1].Received, s[1].Checkup.Now = now.Add(4*time.Second), now.Add(3*time.Second) }, OK, ""},
		"version skew":     {func(s []Seen) { s[2].Checkup.Version = "1.1" }, Weak, "version: the servers run different versions"},
		"another setting":  {func(s []Seen) { delete(s[2].Checkup.Settings, "server.b") }, Weak, "it matters who leads: server.b"},
		"a full disk":      {func(s []Seen) { s[0].Checkup.Sick = "no space left" }, Broken, "log s0.global: no space left"},
		"other pools": {
			func(s []Seen) { s[1].Checkup.Pools = []string{"pool p ends"} }, Weak, "fleet s1.global: the fleet's pools are not those",
		},
		"an impostor": {
			func(s []Seen) { s[0].Checkup.Refused = map[string]string{"id1": "it is another"} }, Broken,
			"peers s0.global: it sends server s1.global no entries of the log: it is another. Start the right server there",
		},
		"a root key without its key": {
			func(s []Seen) { s[2].Checkup.Locked = map[string]string{"k": "root key k cannot be unwrapped"} }, Broken,
			"keyring s2.global: what is encrypted or signed with it is not to be had here: root key k cannot be unwrapped",
		},
		"a slow disk":        {func(s []Seen) { s[0].Checkup.Writes.Mean = 80 * time.Millisecond }, Weak, "disk s0.global: the disk under"},
		"a very slow disk":   {func(s []Seen) { s[0].Checkup.Writes.Mean = time.Second }, Broken, "disk s0.global: a write of the log takes 1s"},
		"one long write":     {func(s []Seen) { s[0].Checkup.Writes.Worst = 3 * time.Second }, Weak, "took 3s at worst of 100"},
		"a server is behind": {func(s []Seen) { s[1].Checkup.Applied = 10 }, Weak, "state s1.global: it is 990 entries behind"},
		"a silent leader":    {func(s []Seen) { s[1].Checkup.LastContact = 5 * time.Second }, Weak, "it has not heard of the leader for 5s"},
		"a certificate ends": {
			func(s []Seen) { s[1].Checkup.Certificates[0].Ends = now.Add(49 * time.Hour) },
			Weak, "certificate s1.global: cert.pem ends on 2026-11-26, in 2 days",
		},
		"a certificate ended": {func(s []Seen) { s[1].Checkup.Certificates[0].Ends = now }, Broken, "cert.pem ended on 2026-11-24"},
		"a lone server": {func(s []Seen) {
			s[1], s[2] = Seen{Name: "x", Status: "left"}, Seen{Name: "y", Status: "left"}
		}, OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := well(now)
			c.change(seen)
			list := Diagnose(seen, now)
			require.Equal(t, c.state, Worst(list), "%v", list)
			require.Contains(t, wrong(list), c.says)
		})
	}
}

// wrong is all that is not well, as one text.
func wrong(list []Finding) string {
	var parts []string
	for _, f := range list {
		if f.State != OK {
			parts = append(parts, strings.TrimSpace(f.Check+" "+f.Server)+": "+f.Says)
		}
	}
	return strings.Join(parts, "; ")
}
