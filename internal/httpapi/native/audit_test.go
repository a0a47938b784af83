package native_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/client"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/native"
)

// auditing is a server whose record is what asked gets and says.
func auditing(t *testing.T, asked *cluster.AuditQuery, resolver httpapi.Resolver) (*native.Face, string) {
	t.Helper()
	face := native.New(native.Config{}, native.Deps{
		Audit: func(_ context.Context, q cluster.AuditQuery) (cluster.AuditRecords, error) {
			*asked = q
			return cluster.AuditRecords{
				Records: []cluster.AuditRecord{{Server: "s1.global", Seq: 7, Operation: "PUT", Path: "/v1/jobs", Allowed: true, Status: 200}},
				Servers: []cluster.AuditServer{{Name: "s1.global"}, {Name: "s2.global", Problem: "it does not answer"}}, NextToken: "more",
			}, nil
		},
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})
	h := httpapi.Handler(httpapi.Config{Logger: slog.New(slog.DiscardHandler), Clock: clock.Wall{}, Resolver: resolver}, face)
	server := httptest.NewServer(described(t, h))
	t.Cleanup(server.Close)
	return face, server.URL
}

// TestTheRecordIsAskedForAsItIsMeant: what the client asks for arrives, and what is wrong with a parameter is said with its name.
func TestTheRecordIsAskedForAsItIsMeant(t *testing.T) {
	t.Parallel()
	var asked cluster.AuditQuery
	face, site := auditing(t, &asked, nil)
	c, err := client.New(site)
	require.NoError(t, err)
	want := cluster.AuditQuery{
		Accessor: "a", Operation: "PUT", Object: "o", Namespace: "n", Class: "change", Stage: "OperationReceived", Allowed: new(false),
		Since: time.Unix(1000, 5).UTC(), Until: time.Unix(2000, 0).UTC(), PerPage: 3, NextToken: "t",
	}
	found, err := c.Audit(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, want, asked)
	require.Equal(t, "more", found.NextToken)
	require.Equal(t, uint64(7), found.Records[0].Seq)
	_, err = c.Audit(t.Context(), cluster.AuditQuery{})
	require.NoError(t, err)
	require.Equal(t, cluster.AuditQuery{PerPage: cluster.DefaultAuditPage}, asked)

	for query, says := range map[string]string{
		"class=x": "class: want one of", "stage=x": "stage: want one of", "allowed=x": "allowed: want true or false",
		"per_page=0": "per_page: want a number", "per_page=1001": "per_page: want a number", "since=x": "since: want a time",
		"until=-2h": "until: want a time",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site+"/v1/operator/audit?"+query, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, query)
		require.Contains(t, string(body), says)
	}
	face.Audit = nil
	_, err = c.Audit(t.Context(), cluster.AuditQuery{})
	require.Equal(t, drover.NotImplemented, drover.CodeOf(err))
}

// TestTheRecordIsForManagementTokens: it names what is in all namespaces, and who asked for it from where.
func TestTheRecordIsForManagementTokens(t *testing.T) {
	t.Parallel()
	var asked cluster.AuditQuery
	_, site := auditing(t, &asked, readers{})
	c, err := client.New(site, client.WithToken("tenant"))
	require.NoError(t, err)
	_, err = c.Audit(t.Context(), cluster.AuditQuery{})
	require.Equal(t, drover.Forbidden, drover.CodeOf(err))
	require.Zero(t, asked)
}
