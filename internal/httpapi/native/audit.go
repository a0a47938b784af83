package native

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi"
)

// The words that stages and classes of requests have.
var (
	auditStages  = []string{"OperationReceived", "OperationComplete"}
	auditClasses = []string{"read", "secret", "change"}
)

// auditOperations are those on the record of requests.
func (f *Face) auditOperations() []operation {
	return []operation{{
		Route: httpapi.Route{
			Pattern: "GET /v1/operator/audit", Where: httpapi.Any, Need: httpapi.Management, Handle: f.audit,
		},
		summary: "What the servers of the region recorded of requests, the newest first; each server is asked",
		query: []param{
			{Name: "accessor", Kind: "string", About: "only of the token with this accessor id, or the beginning of it, or with this name"},
			{Name: "operation", Kind: "string", About: "only of this method"},
			{Name: "object", Kind: "string", About: "only those with this in their path or in what it names"},
			{Name: "namespace", Kind: "string", About: "only of this one; default all"},
			{Name: "class", Kind: "string", About: "only of this one", Values: auditClasses},
			{
				Name: "stage", Kind: "string", Values: auditStages,
				About: "default OperationComplete: each request once, when it was answered or refused, and a stream when it ended",
			},
			{Name: "allowed", Kind: "boolean", About: "only those that were let in, or only those that were refused"},
			{Name: "since", Kind: "string", About: `a time as in "2026-01-02T15:04:05Z", or how long ago as in "2h"`},
			{Name: "until", Kind: "string", About: "likewise; not at it"},
			{Name: "per_page", Kind: "integer", About: "records at most; from 1 to 1000, default 100"},
			{Name: "next_token", Kind: "string", About: "NextToken of the page before"},
		},
		out: cluster.AuditRecords{},
	}}
}

// audit answers GET /v1/operator/audit.
func (f *Face) audit(w http.ResponseWriter, r *http.Request) error {
	if f.Audit == nil {
		return drover.Errorf(drover.NotImplemented, "this agent is a node only: ask a server")
	}
	q, err := auditQuery(r.URL.Query(), f.Clock.Now())
	if err != nil {
		return err
	}
	found, err := f.Audit(r.Context(), q)
	return answer(w, r, http.StatusOK, found, err)
}

// auditQuery is what the query asks for. Errors: Invalid, with the parameter.
func auditQuery(v url.Values, now time.Time) (q cluster.AuditQuery, err error) {
	q = cluster.AuditQuery{
		Accessor: v.Get("accessor"), Operation: v.Get("operation"), Object: v.Get("object"), Namespace: v.Get("namespace"),
		Class: v.Get("class"), Stage: v.Get("stage"), PerPage: cluster.DefaultAuditPage, NextToken: v.Get("next_token"),
	}
	if q.Namespace == "*" {
		q.Namespace = ""
	}
	for name, of := range map[string]struct {
		value string
		words []string
	}{"class": {q.Class, auditClasses}, "stage": {q.Stage, auditStages}} {
		if of.value != "" && !slices.Contains(of.words, of.value) {
			return q, drover.Errorf(drover.Invalid, "%s: want one of %s, got %q", name, strings.Join(of.words, ", "), of.value)
		}
	}
	if text := v.Get("allowed"); text != "" {
		allowed, err := strconv.ParseBool(text)
		if err != nil {
			return q, drover.Errorf(drover.Invalid, "allowed: want true or false, got %q", text)
		}
		q.Allowed = &allowed
	}
	if text := v.Get("per_page"); text != "" {
		if q.PerPage, err = strconv.Atoi(text); err != nil || q.PerPage < 1 || q.PerPage > cluster.MaxAuditPage {
			return q, drover.Errorf(drover.Invalid, "per_page: want a number from 1 to %d, got %q", cluster.MaxAuditPage, text)
		}
	}
	if q.Since, err = timeOf("since", v.Get("since"), now); err != nil {
		return q, err
	}
	q.Until, err = timeOf("until", v.Get("until"), now)
	return q, err
}

// timeOf reads a time, or how long ago it was; "" is none. Errors: Invalid, with the parameter.
func timeOf(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return at, nil
	}
	ago, err := time.ParseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, drover.Errorf(drover.Invalid, `%s: want a time as in "2026-01-02T15:04:05Z", or how long ago as in "2h", got %q`,
			name, text)
	}
	return now.Add(-ago), nil
}
