package providertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/drover-project/drover/fleet"
	"github.com/drover-project/drover/internal/fleet/provider"
	"github.com/drover-project/drover/internal/id"
)

// Harness makes providers to test.
type Harness struct {
	// New gives an owner's view of an empty cloud: none of what the tests before it made is listed.
	New func(t *testing.T, owner string) provider.Provider
	// Beside gives another owner's view of the same cloud; nil = it can't be had.
	Beside   func(t *testing.T, p provider.Provider, owner string) provider.Provider
	Offering fleet.Offering                          // that can be bought
	Image    string                                  // to make machines from
	Wait     func(time.Duration)                     // lets time pass
	Scarce   func(t *testing.T, owner string) Scarce // nil = what a cloud lacks can't be tried
}

// Scarce is a provider whose offerings fail, each in its way.
type Scarce struct {
	Provider        provider.Provider
	Quota, Capacity fleet.Offering
	Group           string
}

// suite is one test, with a provider of its own.
type suite struct {
	Harness
	*testing.T
	p     provider.Provider
	owner string
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	tests := map[string]func(*suite){
		"created machines are listed with their tags":  (*suite).created,
		"a repeated create gives the same machines":    (*suite).idempotent,
		"an ambiguous create can be repeated":          (*suite).ambiguous,
		"calls at once don't disturb each other":       (*suite).atOnce,
		"user data that is too long is refused":        (*suite).userData,
		"destroyed machines go and stay gone":          (*suite).destroyed,
		"tags are set and others left":                 (*suite).tags,
		"what is not there is not found":               (*suite).notFound,
		"others' machines are not listed":              (*suite).foreign,
		"lists have pages":                             (*suite).pages,
		"a call that is cut off is ambiguous":          (*suite).canceled,
		"an offering that is not sold is refused":      (*suite).unknown,
		"lack of capacity and quota are told apart":    (*suite).scarce,
		"a batch is made once and known by its index":  (*suite).batch,
		"capabilities are sane and an offering a type": (*suite).capable,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			owner := id.Random{}.New()
			test(&suite{h, t, h.New(t, owner), owner})
		})
	}
}

// request is a create of one machine for each id, with the tags that the fleet gives.
func (s *suite) request(owner string, ids ...string) provider.Request {
	r := provider.Request{Offering: s.Offering, Image: s.Image, Tags: map[string]string{fleet.TagOwner: owner, fleet.TagPool: "p"}}
	for _, id := range ids {
		r.Intents = append(r.Intents, provider.Intent{ID: id, Tags: map[string]string{fleet.TagIntent: id}})
	}
	return r
}

// create makes machines, as many a call as the provider can.
func (s *suite) create(owner string, ids ...string) (all []provider.Machine) {
	s.Helper()
	for batch := s.p.Capabilities().Batch; len(ids) > 0; {
		n := min(batch, len(ids))
		made, err := s.p.Create(s.Context(), s.request(owner, ids[:n]...))
		require.NoError(s, err)
		require.Len(s, made, n)
		all, ids = append(all, made...), ids[n:]
	}
	return all
}

// list gives every machine that is not gone, after the time within which new ones are surely seen.
func (s *suite) list() map[string]provider.Machine {
	s.Helper()
	s.Wait(s.p.Capabilities().Visible + time.Millisecond)
	all := map[string]provider.Machine{}
	for page := ""; ; {
		list, next, err := s.p.List(s.Context(), page)
		require.NoError(s, err)
		for _, m := range list {
			if m.State != provider.Terminated && m.State != provider.Terminating {
				all[m.ID] = m
			}
		}
		if next == "" {
			return all
		}
		page = next
	}
}

// created: a machine is listed with its intent, tags, type and zone.
func (s *suite) created() {
	m := s.create(s.owner, "a")[0]
	require.NotEmpty(s, m.ID)
	seen, ok := s.list()[m.ID]
	require.True(s, ok)
	require.Equal(s, "a", seen.Intent)
	require.Equal(s, s.owner, seen.Tags[fleet.TagOwner])
	require.Equal(s, "p", seen.Tags[fleet.TagPool])
	require.Equal(s, s.Offering.Type, seen.Type)
	require.Equal(s, s.Offering.Zone, seen.Zone)
	require.False(s, seen.CreatedAt.IsZero())
}

// idempotent: the same intent twice is one machine where the provider says so, and otherwise two.
func (s *suite) idempotent() {
	a := s.create(s.owner, "a")[0]
	b := s.create(s.owner, "a")[0]
	want := 1
	if !s.p.Capabilities().Idempotent {
		want = 2
	}
	require.Equal(s, want == 1, a.ID == b.ID)
	require.Len(s, s.list(), want)
}

// destroyed: a machine that is destroyed is not listed any more, and a second destroy does no harm.
func (s *suite) destroyed() {
	m := s.create(s.owner, "a")[0]
	require.NoError(s, s.p.Destroy(s.Context(), m.ID))
	require.Empty(s, s.list())
	if err := s.p.Destroy(s.Context(), m.ID); err != nil { // accepted again, or gone: nothing else
		require.Equal(s, provider.NotFound, provider.KindOf(err))
	}
}

// tags: SetTags keeps other tags and every character of a value.
func (s *suite) tags() {
	m := s.create(s.owner, "a")[0]
	strange := "a=b & <c> \"d\" ü/€ +%20"
	require.NoError(s, s.p.SetTags(s.Context(), m.ID, map[string]string{fleet.TagBehavior: "hold", "note": strange}))
	require.NoError(s, s.p.SetTags(s.Context(), m.ID, map[string]string{"note2": ""}))
	seen := s.list()[m.ID]
	require.Equal(s, "hold", seen.Tags[fleet.TagBehavior])
	require.Equal(s, strange, seen.Tags["note"])
	require.Contains(s, seen.Tags, "note2")
	require.Equal(s, "p", seen.Tags[fleet.TagPool])
}

// notFound: calls about a machine that never was say so.
func (s *suite) notFound() {
	require.Equal(s, provider.NotFound, provider.KindOf(s.p.Destroy(s.Context(), "i-00000000")))
	require.Equal(s, provider.NotFound, provider.KindOf(s.p.SetTags(s.Context(), "i-00000000", map[string]string{"a": "b"})))
}

// foreign: machines of another owner are neither listed nor touched, even with an intent like ours.
func (s *suite) foreign() {
	s.create("somebody-else", "a")
	require.Empty(s, s.list())
	if s.Beside == nil {
		return
	}
	theirs := &suite{s.Harness, s.T, s.Beside(s.T, s.p, "neighbour"), "neighbour"}
	kept := theirs.create("neighbour", "a")[0] // the same intent as ours
	mine := s.create(s.owner, "a")[0]
	require.NotEqual(s, kept.ID, mine.ID)
	require.Len(s, s.list(), 1)
	require.NoError(s, s.p.Destroy(s.Context(), mine.ID))
	require.Empty(s, s.list())
	require.Contains(s, theirs.list(), kept.ID)
}

func (s *suite) pages() {
	var ids []string
	for n := range 7 {
		ids = append(ids, fmt.Sprint("page-", n))
	}
	s.create(s.owner, ids...)
	require.Len(s, s.list(), 7)
}

// canceled: a create may have happened; the others did nothing, or it does not matter.
func (s *suite) canceled() {
	m := s.create(s.owner, "there")[0]
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.p.Create(ctx, s.request(s.owner, "a"))
	require.Equal(s, provider.Ambiguous, provider.KindOf(err))
	_, _, err = s.p.List(ctx, "")
	require.Error(s, err, "a list that was cut off is no list")
	require.Error(s, s.p.Destroy(ctx, m.ID))
	require.Error(s, s.p.SetTags(ctx, m.ID, map[string]string{"a": "b"}))
}

// ambiguous repeats a create whose caller went away in the middle: one machine comes of it, and a list has it.
func (s *suite) ambiguous() {
	if !s.p.Capabilities().Idempotent {
		return
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { // ends with its call, which ends with ctx
		defer close(done)
		_, _ = s.p.Create(ctx, s.request(s.owner, "a")) // what it says is not heard
	}()
	cancel()
	<-done
	m := s.create(s.owner, "a")[0]
	require.Contains(s, s.list(), m.ID)
	require.Len(s, s.list(), 1)
}

// atOnce makes and tags machines from several goroutines, two for each intent.
func (s *suite) atOnce() {
	const machines = 3
	same := s.p.Capabilities().Idempotent
	var g errgroup.Group
	for n := range 2 * machines {
		g.Go(func() error { // ends with its calls
			name := fmt.Sprint("at-once-", n)
			if same {
				name = fmt.Sprint("at-once-", n/2)
			}
			made, err := s.p.Create(s.Context(), s.request(s.owner, name))
			if err != nil {
				return err
			}
			return s.p.SetTags(s.Context(), made[0].ID, map[string]string{fmt.Sprint("n", n): "1"})
		})
	}
	require.NoError(s, g.Wait())
	list := s.list()
	if !same {
		require.Len(s, list, 2*machines)
		return
	}
	require.Len(s, list, machines)
	for n := range 2 * machines {
		for _, m := range list {
			if m.Intent == fmt.Sprint("at-once-", n/2) {
				require.Equal(s, "1", m.Tags[fmt.Sprint("n", n)], "of %s", m.Intent)
			}
		}
	}
}

// userData: what is as long as UserDataMax is accepted, and one byte more is an error of the configuration.
func (s *suite) userData() {
	most := s.p.Capabilities().UserDataMax
	if most == 0 {
		return
	}
	r := s.request(s.owner, "a")
	r.Intents[0].UserData = strings.Repeat("#", most+1)
	_, err := s.p.Create(s.Context(), r)
	require.Equal(s, provider.Config, provider.KindOf(err))
	require.ErrorContains(s, err, "user data")
	r.Intents[0].UserData = r.Intents[0].UserData[:most]
	_, err = s.p.Create(s.Context(), r)
	require.NoError(s, err)
}

// unknown: a type that the cloud does not have is an error of the configuration, and nothing is made.
func (s *suite) unknown() {
	r := s.request(s.owner, "a")
	r.Offering.Type, r.Offering.Key = "no-such-type", "x/no-such-type/z/on-demand"
	_, err := s.p.Create(s.Context(), r)
	require.Equal(s, provider.Config, provider.KindOf(err))
	require.Empty(s, s.list())
}

// scarce: errors of quota and of capacity are told apart, as the fleet reacts to them differently.
func (s *suite) scarce() {
	if s.Scarce == nil {
		return
	}
	sc := s.Scarce(s.T, s.owner)
	s.Offering = sc.Quota
	_, err := sc.Provider.Create(s.Context(), s.request(s.owner, "q"))
	var e *provider.Error
	require.ErrorAs(s, err, &e)
	require.Equal(s, provider.Quota, e.Kind)
	require.Equal(s, sc.Group, e.Group)
	s.Offering = sc.Capacity
	_, err = sc.Provider.Create(s.Context(), s.request(s.owner, "c"))
	require.ErrorAs(s, err, &e)
	require.Equal(s, provider.Capacity, e.Kind)
	require.NotEmpty(s, e.Scope)
}

// batch: machines that share their user data are made by one call, whose repeat, for whichever of them, gives the same
// ones. Lists know which is whose although nobody gave them tags of their own.
func (s *suite) batch() {
	if !s.p.Capabilities().Shared {
		return
	}
	b := provider.Batch{ID: id.Random{}.New(), Size: 3}
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.p.Create(ctx, s.request(s.owner, b.Intents()...))
	require.Equal(s, provider.Ambiguous, provider.KindOf(err))
	first, err := s.p.Create(s.Context(), s.request(s.owner, b.Intents()...))
	require.NoError(s, err)
	require.Len(s, first, 3)
	ids := map[string]string{}
	for _, m := range first {
		ids[m.Intent] = m.ID
	}
	require.Len(s, ids, 3, "each is of another intent")
	again, err := s.p.Create(s.Context(), s.request(s.owner, b.Intent(1)))
	require.NoError(s, err)
	for _, m := range again {
		require.Equal(s, ids[m.Intent], m.ID)
	}
	list := s.list()
	require.Len(s, list, 3)
	for _, m := range list {
		require.Equal(s, ids[m.Intent], m.ID)
		require.Equal(s, s.owner, m.Tags[fleet.TagOwner])
		require.Equal(s, "p", m.Tags[fleet.TagPool])
		require.NoError(s, s.p.SetTags(s.Context(), m.ID, map[string]string{fleet.TagIntent: m.Intent}))
	}
	for _, m := range s.list() {
		require.Equal(s, m.Intent, m.Tags[fleet.TagIntent])
		require.Equal(s, ids[m.Intent], m.ID)
	}
	bad := s.request(s.owner, provider.Batch{ID: id.Random{}.New(), Size: 2}.Intents()...)
	bad.Intents[1].UserData = "# other"
	_, err = s.p.Create(s.Context(), bad)
	require.Equal(s, provider.Config, provider.KindOf(err), "they share their user data")
	require.Len(s, s.list(), 3)
}

func (s *suite) capable() {
	require.Positive(s, s.p.Capabilities().Batch)
	require.NotEmpty(s, s.Offering.Type)
}
