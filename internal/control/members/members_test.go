package members

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// patience bounds the waits of a test on a busy machine; what is waited for is an event.
const patience = 60 * time.Second

func self(name string) Self {
	return Self{
		ID: "id-" + name, Name: name, Region: "global", Datacenter: "dc1", RPCAddr: "127.0.0.1:4647", Expect: 3, Version: "1",
		Protocol: Versions{1, 2},
	}
}

func launch(t *testing.T, s Self, change ...func(*Config)) *Members {
	t.Helper()
	m, err := tryOpen(s, change...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func tryOpen(s Self, change ...func(*Config)) (*Members, error) {
	cfg := Config{Self: s, Bind: "127.0.0.1:0", Pace: Local}
	for _, f := range change {
		f(&cfg)
	}
	return Open(cfg, slog.New(slog.DiscardHandler))
}

func key() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	return base64.StdEncoding.EncodeToString(secret)
}

// until waits until the members are so.
func until(t *testing.T, m *Members, is func() bool, what string) {
	t.Helper()
	limit := time.After(patience)
	for {
		changed := m.Changed()
		if is() {
			return
		}
		select {
		case <-changed:
		case <-limit:
			require.Failf(t, "not in time", "want %s, got %+v", what, m.List())
		}
	}
}

// sees waits until the members are "name=status …", in order.
func sees(t *testing.T, m *Members, want string) {
	t.Helper()
	until(t, m, func() bool { return statuses(m) == want }, want)
}

func statuses(m *Members) string {
	var out []string
	for _, one := range m.List() {
		out = append(out, one.Name+"="+string(one.Status))
	}
	return strings.Join(out, " ")
}

func join(t *testing.T, m *Members, to ...*Members) {
	t.Helper()
	for _, other := range to {
		n, err := m.Join(t.Context(), []string{other.Address()})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

func TestServersFindEachOther(t *testing.T) {
	t.Parallel()
	a, b, c := launch(t, self("a")), launch(t, self("b")), launch(t, self("c"))
	join(t, b, a)
	join(t, c, b)
	for _, m := range []*Members{a, b, c} {
		sees(t, m, "a=alive b=alive c=alive")
	}
	got := a.List()[2]
	require.Equal(t, self("c"), got.Self, "all that it announced arrives")
	require.Equal(t, c.Address(), got.Gossip)
	require.Equal(t, "4647", got.Tags["port"])

	require.NoError(t, c.Close())
	sees(t, a, "a=alive b=alive c=failed")
	require.NoError(t, b.Leave())
	require.NoError(t, b.Close()) // it would go on to answer, and its last words can be lost
	sees(t, a, "a=alive b=left c=failed")
	require.NoError(t, a.ForceLeave("nobody", false), "an unknown name is no error")
	require.NoError(t, a.ForceLeave("c", false))
	sees(t, a, "a=alive b=left c=left")
	require.NoError(t, a.ForceLeave("c.global", true))
	sees(t, a, "a=alive b=left")
}

func TestAServerComesBackAtAnotherAddress(t *testing.T) {
	t.Parallel()
	a, b := launch(t, self("a")), launch(t, self("b"))
	join(t, b, a)
	sees(t, a, "a=alive b=alive")
	require.NoError(t, b.Close())
	sees(t, a, "a=alive b=failed")
	join(t, launch(t, self("b")), a)
	sees(t, a, "a=alive b=alive")
}

func TestMembersAreRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := func(c *Config) { c.DataDir = dir }
	a, b := launch(t, self("a")), launch(t, self("b"), kept)
	join(t, b, a)
	sees(t, b, "a=alive b=alive")
	address := b.Address()
	require.NoError(t, b.Close())
	sees(t, a, "a=alive b=failed")
	b = launch(t, self("b"), kept, func(c *Config) { c.Bind = address })
	sees(t, b, "a=alive b=alive") // nobody told it where a is
	sees(t, a, "a=alive b=alive")
}

func TestAnnouncing(t *testing.T) {
	t.Parallel()
	a, b := launch(t, self("a")), launch(t, self("b"))
	join(t, b, a)
	sees(t, a, "a=alive b=alive")
	require.NoError(t, b.Announce(func(s *Self) { s.Cluster, s.Protocol.Max, s.Name, s.ID = "c1", 7, "other", "other" }))
	want := self("b")
	want.Cluster, want.Protocol.Max = "c1", 7
	require.Equal(t, want, b.Self(), "who it is does not change")
	until(t, a, func() bool { return a.List()[1].Self == want }, fmt.Sprint(want))
	require.NoError(t, b.Announce(func(*Self) {}), "nothing new")
}

// Two clusters of one region never merge; those of two regions know each other.
func TestClusters(t *testing.T) {
	t.Parallel()
	of := func(name, region, cluster string) Self {
		s := self(name)
		s.Region, s.Cluster = region, cluster
		return s
	}
	a, b := launch(t, of("a", "global", "one")), launch(t, of("b", "global", "two"))
	n, err := b.Join(t.Context(), []string{a.Address()})
	require.ErrorContains(t, err, "belongs to another cluster of region global")
	require.ErrorContains(t, err, "two clusters never merge. Stop the server whose state is not needed")
	require.NotContains(t, err.Error(), "\n")
	require.Equal(t, drover.Conflict, drover.CodeOf(err))
	require.Zero(t, n)
	require.Equal(t, "a=alive", statuses(a), "nothing changed")
	require.Equal(t, "b=alive", statuses(b))

	far, fresh := launch(t, of("f", "other", "three")), launch(t, of("n", "global", ""))
	join(t, far, a)
	join(t, fresh, a)
	sees(t, a, "a=alive n=alive f=alive")
	sees(t, far, "a=alive n=alive f=alive")

	twin := self("a")
	twin.ID = "another"
	_, err = launch(t, twin).Join(t.Context(), []string{a.Address()})
	require.ErrorContains(t, err, "needs a name and an id of its own")
	sees(t, a, "a=alive n=alive f=alive")
}

// Who cannot read the log of a cluster is refused with the reason, by itself and by the cluster, and nothing changes; so is who
// reads newer ones only. A server that waits to be joined takes in whatever reads anything.
func TestProgramsThatCannotReadTheLog(t *testing.T) {
	t.Parallel()
	of := func(name string, writes, lowest, highest int) Self {
		s := self(name)
		s.Writes, s.Protocol = writes, Versions{lowest, highest}
		if writes > 0 {
			s.Cluster = "one"
		}
		return s
	}
	a := launch(t, of("a", 2, 1, 2))
	for name, s := range map[string]Self{"old": of("old", 0, 1, 1), "unknown": of("unknown", 0, 0, 0), "new": of("new", 0, 3, 4)} {
		m := launch(t, s)
		_, err := m.Join(t.Context(), []string{a.Address()})
		require.ErrorContains(t, err, `the cluster of server "a" writes version 2, and this server's program reads `+s.Protocol.String())
		require.Equal(t, drover.Conflict, drover.CodeOf(err))
		require.Equal(t, name+"=alive", statuses(m))
	}
	require.Equal(t, "a=alive", statuses(a), "nothing changed")
	join(t, launch(t, of("b", 0, 2, 3)), a)
	sees(t, a, "a=alive b=alive")

	// A stranger cannot make the version look higher: who says so is not heard, and neither is what it says of others.
	rogue, friend := wire(of("rogue", 99, 1, 99)), wire(of("friend", 2, 1, 2))
	require.ErrorContains(t, a.merge.NotifyMerge([]*serf.Member{&rogue}), "writes version 99")
	require.ErrorContains(t, a.merge.NotifyMerge([]*serf.Member{&friend, &rogue}), "writes version 99")

	// Programs of before do not ask, so the cluster does. What a list has besides is heard.
	old, good, far := wire(of("old", 0, 0, 0)), wire(of("good", 2, 1, 2)), wire(of("far", 0, 0, 0))
	far.Tags["region"], far.Name = "far", "far.far"
	for _, one := range []serf.Member{old, wire(of("new", 0, 3, 4))} {
		err := a.merge.NotifyMerge([]*serf.Member{&one})
		require.ErrorContains(t, err, "this cluster writes version 2")
		require.ErrorContains(t, err, "start another program there")
	}
	require.NoError(t, a.merge.NotifyMerge([]*serf.Member{&good}))
	require.NoError(t, a.merge.NotifyMerge([]*serf.Member{&far}))
	require.NoError(t, a.merge.NotifyMerge([]*serf.Member{&old, &good}))
	waits := launch(t, of("w", 0, 1, 2))
	require.NoError(t, waits.merge.NotifyMerge([]*serf.Member{&old}))
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	a := launch(t, self("a"))
	_, err := a.Join(t.Context(), []string{"127.0.0.1:1"})
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), fmt.Sprint(err))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Join(ctx, []string{"127.0.0.1:1"})
	require.Error(t, err)
}

func with(t *testing.T, k, dir string) func(*Config) {
	t.Helper()
	keys, err := OpenKeyring(dir, k)
	require.NoError(t, err)
	return func(c *Config) { c.Keys, c.DataDir = keys, dir }
}

func TestGossipKeys(t *testing.T) {
	t.Parallel()
	first, second := key(), key()
	dirs := []string{t.TempDir(), t.TempDir()}
	secrets, err := OpenKeyring(dirs[0], first)
	require.NoError(t, err)
	a := launch(t, self("a"), func(c *Config) { c.Keys, c.DataDir = secrets, dirs[0] })
	b := launch(t, self("b"), with(t, first, dirs[1]))
	join(t, b, a)
	sees(t, a, "a=alive b=alive")

	for name, k := range map[string]string{"clear": "", "wrong": key()} {
		_, err := launch(t, self(name), with(t, k, "")).Join(t.Context(), []string{a.Address()})
		require.Error(t, err, name)
	}
	require.Equal(t, "a=alive b=alive", statuses(a))

	keys, err := a.InstallKey(second)
	require.NoError(t, err)
	require.Equal(t, 2, keys.Servers)
	_, err = a.RemoveKey(first)
	require.ErrorContains(t, err, "b.global: ", "it is in use, and who says so is named")
	_, err = b.UseKey(second)
	require.NoError(t, err)
	require.Equal(t, []string{second, first}, secrets.Secrets())
	_, err = a.RemoveKey(first)
	require.NoError(t, err)
	require.Equal(t, []string{second}, secrets.Secrets(), "who proves itself by the keyring follows it")
	keys, err = b.ListKeys()
	require.NoError(t, err)
	require.Equal(t, map[string]int{second: 2}, keys.Keys)
	require.Equal(t, map[string]int{second: 2}, keys.Primaries)

	join(t, launch(t, self("late"), with(t, second, "")), a)
	sees(t, b, "a=alive b=alive late=alive")

	require.NoError(t, b.Close())
	b = launch(t, self("b"), with(t, first, dirs[1])) // the configuration still says the first
	join(t, b, a)
	sees(t, b, "a=alive b=alive late=alive")
	info, err := os.Stat(filepath.Join(dirs[1], "serf", "keyring"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// Who did not answer about keys is asked again; who refused is not.
func TestWhoDoesNotAnswerAboutKeysIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answers, refusals []int // of three servers, by try
		asked             int
		ok                bool
	}{
		{[]int{3}, []int{0}, 1, true},
		{[]int{2, 3}, []int{0, 0}, 2, true},
		{[]int{2, 2, 2}, []int{0, 0, 0}, keyTries, false},
		{[]int{2}, []int{1}, 1, false},
	} {
		asked := 0
		_, err := insist(func() (*serf.KeyResponse, error) {
			r := &serf.KeyResponse{NumNodes: 3, NumResp: c.answers[asked], NumErr: c.refusals[asked]}
			asked++
			if r.NumErr > 0 || r.NumResp < r.NumNodes {
				return r, errors.New("some")
			}
			return r, nil
		})
		require.Equal(t, c.asked, asked)
		require.Equal(t, c.ok, err == nil)
	}
}

func TestKeysThatCannotBe(t *testing.T) {
	t.Parallel()
	for bad, want := range map[string]string{"???": "base64", "c2hvcnQ=": "16, 24 or 32 bytes, got 5 bytes"} {
		_, err := OpenKeyring("", bad)
		require.ErrorContains(t, err, "server.encrypt", bad)
		require.ErrorContains(t, err, want)
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "serf"), 0o700))
	file := filepath.Join(dir, "serf", "keyring")
	for _, text := range []string{"", "{", "[]", `["c2hvcnQ="]`} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := OpenKeyring(dir, "")
		require.ErrorContains(t, err, file, text)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	open := launch(t, self("a"))
	require.False(t, open.Encrypted())
	_, err := open.ListKeys()
	require.ErrorContains(t, err, "gossip is not encrypted")
}

func TestConfigurationsThatCannotBe(t *testing.T) {
	t.Parallel()
	_, err := tryOpen(self("a"), func(c *Config) { c.Bind = "nowhere" })
	require.ErrorContains(t, err, "bind address")
	_, err = tryOpen(self("a"), func(c *Config) { c.Advertise = "nowhere" })
	require.ErrorContains(t, err, "advertise.serf")
	a := launch(t, self("a"))
	_, err = tryOpen(self("b"), func(c *Config) { c.Bind = a.Address() })
	require.Equal(t, drover.Unavailable, drover.CodeOf(err), fmt.Sprint(err))
}
