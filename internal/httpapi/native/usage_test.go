package native_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/usage"
)

// blindReaders knows the token of somebody who may read no node.
type blindReaders struct{ readers }

func (blindReaders) Resolve(acl.Secret) (*rights.Caller, error) {
	rules, err := policy.Parse(`namespace "team" { capabilities = ["read-runner"] }`)
	return &rights.Caller{Rights: rights.Compile(rules), Token: &acl.Token{}}, err
}

// TestThePastIsForItsCaller: of an allocation for who may read its job, of a node for who may read nodes.
func TestThePastIsForItsCaller(t *testing.T) {
	t.Parallel()
	face := native.New(native.Config{}, native.Deps{
		UsagePast: func(_ context.Context, id string, sees func(string) bool) (usage.Past, error) {
			if !sees("team") {
				return usage.Past{}, drover.Errorf(drover.NotFound, "there is no allocation %q", id)
			}
			return usage.Past{Step: usage.PastStep, CPU: []float64{-1, 3}, Memory: []int64{-1, 4}}, nil
		},
		NodePast: func(_ context.Context, id string) usage.Past {
			return usage.Past{CPU: []float64{}, Memory: []int64{}, Why: id + " is away"}
		},
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	serve := func(r httpapi.Resolver) (*client.Client, string) {
		h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: r}, face)
		server := httptest.NewServer(described(t, h))
		t.Cleanup(server.Close)
		c, err := client.New(server.URL, client.WithToken("tenant"))
		require.NoError(t, err)
		return c, server.URL
	}
	limited, _ := serve(readers{})
	_, err := limited.UsagePast(t.Context(), "a")
	require.Equal(t, drover.NotFound, drover.CodeOf(err))
	_, err = limited.NodePast(t.Context(), "n")
	require.NoError(t, err, "it may read nodes")
	blind, _ := serve(blindReaders{})
	_, err = blind.NodePast(t.Context(), "n")
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	everybody, url := serve(nil)
	past, err := everybody.UsagePast(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, []float64{-1, 3}, past.CPU)
	past, err = everybody.NodePast(t.Context(), "n")
	require.NoError(t, err)
	require.Equal(t, "n is away", past.Why)
	for _, query := range []string{"", "?allocation=a&node_id=n"} {
		answer, err := http.Get(url + "/v1/usage/history" + query)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, query)
	}
}

// TestUsageIsForItsCaller: samples are told of namespaces whose jobs the caller may read, and of a bounded number of allocations.
func TestUsageIsForItsCaller(t *testing.T) {
	t.Parallel()
	face := native.New(native.Config{}, native.Deps{
		Usage: func(_ context.Context, ids []string, sees func(string) bool) usage.Samples {
			out := usage.Samples{Allocations: map[string]*usage.AllocResourceUsage{}, Missing: map[string]string{}}
			for _, id := range ids {
				if sees("team") {
					out.Allocations[id] = &usage.AllocResourceUsage{Timestamp: 7}
				} else {
					out.Missing[id] = "there is no such allocation"
				}
			}
			return out
		},
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	serve := func(r httpapi.Resolver) *client.Client {
		h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: r}, face)
		server := httptest.NewServer(described(t, h))
		t.Cleanup(server.Close)
		c, err := client.New(server.URL, client.WithToken("tenant"))
		require.NoError(t, err)
		return c
	}
	got, err := serve(readers{}).Usage(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, usage.Samples{
		Allocations: map[string]*usage.AllocResourceUsage{}, Missing: map[string]string{"a": "there is no such allocation"},
	}, got, "it may read runners, and no jobs")
	everybody := serve(nil)
	got, err = everybody.Usage(t.Context(), "a", "b")
	require.NoError(t, err)
	require.Equal(t, int64(7), got.Allocations["b"].Timestamp)
	for _, ids := range [][]string{nil, slices.Repeat([]string{"a"}, usage.MostInBatch+1)} {
		_, err = everybody.Usage(t.Context(), ids...)
		require.Equal(t, drover.Invalid, drover.CodeOf(err), err)
	}
}
