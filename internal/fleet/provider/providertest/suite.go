// Package providertest is the suite that every provider has to pass.
package providertest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drover"
	"drover/internal/fleet/provider"
)

// Harness makes providers to test.
type Harness struct {
	New      func(t *testing.T) provider.Provider // an empty cloud
	Owner    string
	Offering drover.Offering           // that can be bought
	Wait     func(time.Duration)       // lets time pass
	Scarce   func(t *testing.T) Scarce // nil = what a cloud lacks can't be tried
}

// Scarce is a provider whose offerings fail, each in its way.
type Scarce struct {
	Provider        provider.Provider
	Quota, Capacity drover.Offering
	Group           string
}

type suite struct {
	Harness
	*testing.T
	p provider.Provider
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	tests := map[string]func(*suite){
		"created machines are listed with their tags":  (*suite).created,
		"a repeated create gives the same machines":    (*suite).idempotent,
		"destroyed machines go and stay gone":          (*suite).destroyed,
		"tags are set and others left":                 (*suite).tags,
		"what is not there is not found":               (*suite).notFound,
		"others' machines are not listed":              (*suite).foreign,
		"lists have pages":                             (*suite).pages,
		"a call that is cut off is ambiguous":          (*suite).canceled,
		"an offering that is not sold is refused":      (*suite).unknown,
		"lack of capacity and quota are told apart":    (*suite).scarce,
		"capabilities are sane and an offering a type": (*suite).capable,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(&suite{h, t, h.New(t)}) })
	}
}

func (s *suite) request(owner string, ids ...string) provider.Request {
	r := provider.Request{Offering: s.Offering, Image: "image", Tags: map[string]string{drover.TagOwner: owner, drover.TagPool: "p"}}
	for _, id := range ids {
		r.Intents = append(r.Intents, provider.Intent{ID: id, Tags: map[string]string{drover.TagIntent: id}})
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

func (s *suite) created() {
	m := s.create(s.Owner, "a")[0]
	require.NotEmpty(s, m.ID)
	seen, ok := s.list()[m.ID]
	require.True(s, ok)
	require.Equal(s, "a", seen.Intent)
	require.Equal(s, s.Owner, seen.Tags[drover.TagOwner])
	require.Equal(s, "p", seen.Tags[drover.TagPool])
	require.Equal(s, s.Offering.Type, seen.Type)
	require.Equal(s, s.Offering.Zone, seen.Zone)
	require.False(s, seen.CreatedAt.IsZero())
}

func (s *suite) idempotent() {
	a := s.create(s.Owner, "a")[0]
	b := s.create(s.Owner, "a")[0]
	want := 1
	if !s.p.Capabilities().Idempotent {
		want = 2
	}
	require.Equal(s, want == 1, a.ID == b.ID)
	require.Len(s, s.list(), want)
}

func (s *suite) destroyed() {
	m := s.create(s.Owner, "a")[0]
	require.NoError(s, s.p.Destroy(s.Context(), m.ID))
	require.Empty(s, s.list())
	if err := s.p.Destroy(s.Context(), m.ID); err != nil { // accepted again, or gone: nothing else
		require.Equal(s, provider.NotFound, provider.KindOf(err))
	}
}

func (s *suite) tags() {
	m := s.create(s.Owner, "a")[0]
	require.NoError(s, s.p.SetTags(s.Context(), m.ID, map[string]string{drover.TagBehavior: "hold"}))
	seen := s.list()[m.ID]
	require.Equal(s, "hold", seen.Tags[drover.TagBehavior])
	require.Equal(s, "p", seen.Tags[drover.TagPool])
}

func (s *suite) notFound() {
	require.Equal(s, provider.NotFound, provider.KindOf(s.p.Destroy(s.Context(), "i-00000000")))
	require.Equal(s, provider.NotFound, provider.KindOf(s.p.SetTags(s.Context(), "i-00000000", map[string]string{"a": "b"})))
}

func (s *suite) foreign() {
	s.create("somebody-else", "a")
	require.Empty(s, s.list())
}

func (s *suite) pages() {
	var ids []string
	for n := range 7 {
		ids = append(ids, fmt.Sprint("page-", n))
	}
	s.create(s.Owner, ids...)
	require.Len(s, s.list(), 7)
}

func (s *suite) canceled() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, err := s.p.Create(ctx, s.request(s.Owner, "a"))
	require.Equal(s, provider.Ambiguous, provider.KindOf(err))
}

func (s *suite) unknown() {
	r := s.request(s.Owner, "a")
	r.Offering.Type, r.Offering.Key = "no-such-type", "x/no-such-type/z/on-demand"
	_, err := s.p.Create(s.Context(), r)
	require.Equal(s, provider.Config, provider.KindOf(err))
	require.Empty(s, s.list())
}

func (s *suite) scarce() {
	if s.Scarce == nil {
		return
	}
	sc := s.Scarce(s.T)
	s.Offering = sc.Quota
	_, err := sc.Provider.Create(s.Context(), s.request(s.Owner, "q"))
	var e *provider.Error
	require.ErrorAs(s, err, &e)
	require.Equal(s, provider.Quota, e.Kind)
	require.Equal(s, sc.Group, e.Group)
	s.Offering = sc.Capacity
	_, err = sc.Provider.Create(s.Context(), s.request(s.Owner, "c"))
	require.ErrorAs(s, err, &e)
	require.Equal(s, provider.Capacity, e.Kind)
	require.NotEmpty(s, e.Scope)
}

func (s *suite) capable() {
	require.Positive(s, s.p.Capabilities().Batch)
	require.NotEmpty(s, s.Offering.Type)
}
