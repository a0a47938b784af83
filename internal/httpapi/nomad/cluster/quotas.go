package cluster

import (
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/tenancy"
)

// quotaRoutes lists the routes of quotas. Nomad's client asks for /v1/quota/usage/NAME, its documentation names /v1/quota-usage/NAME.
func (f *face) quotaRoutes() []httpapi.Route {
	read, write := httpapi.Level(policy.Quota, policy.Read), httpapi.Level(policy.Quota, policy.Write)
	return []httpapi.Route{
		{Pattern: "GET /v1/quotas", Where: httpapi.Reads, Need: read, Handle: f.listQuotas},
		{Pattern: "PUT,POST /v1/quota", Where: httpapi.Authority, Need: write, Handle: f.upsertQuota},
		{Pattern: "GET /v1/quota/{name}", Where: httpapi.Reads, Need: read, Handle: f.readQuota},
		{Pattern: "PUT,POST /v1/quota/{name}", Where: httpapi.Authority, Need: write, Handle: f.upsertQuota},
		{Pattern: "DELETE /v1/quota/{name}", Where: httpapi.Authority, Need: write, Handle: f.deleteQuota},
		{Pattern: "GET /v1/quota-usages", Where: httpapi.Reads, Need: read, Handle: f.listQuotaUsages},
		{Pattern: "GET /v1/quota-usage/{name}", Where: httpapi.Reads, Need: read, Handle: f.readQuotaUsage},
		{Pattern: "GET /v1/quota/usage/{name}", Where: httpapi.Reads, Need: read, Handle: f.readQuotaUsage},
	}
}

// quotasAsked are the quotas that a list may show.
func quotasAsked(_ answer.Query, s answer.Snapshot) iter.Seq[*tenancy.QuotaSpec] { return s.Quotas("") }

func quotaName(q *tenancy.QuotaSpec) string { return q.Name }

// listQuotas answers GET /v1/quotas.
func (f *face) listQuotas(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*tenancy.QuotaSpec, *tenancy.QuotaSpec]{
		On: []answer.Source{{Table: tables.Quotas}}, Items: quotasAsked, ID: quotaName, Keep: answer.HasPrefix(r, quotaName), Sees: allQuotas,
		View: func(q *tenancy.QuotaSpec, _ answer.Snapshot) *tenancy.QuotaSpec { return q },
	}.Serve(f.Cluster, w, r)
}

// allQuotas lets whoever may list quotas see each.
func allQuotas(*rights.Caller, *tenancy.QuotaSpec) bool { return true }

// today is the day of which executions' use is shown.
func (f *face) today() int64 { return execution.Day(f.Clock.Now()) }

// listQuotaUsages answers GET /v1/quota-usages.
func (f *face) listQuotaUsages(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*tenancy.QuotaSpec, *tenancy.QuotaUsage]{
		On: []answer.Source{{Table: tables.QuotaUsages}}, Items: quotasAsked, ID: quotaName,
		Keep: answer.HasPrefix(r, quotaName), Sees: allQuotas,
		View: func(q *tenancy.QuotaSpec, s answer.Snapshot) *tenancy.QuotaUsage {
			return s.QuotaUsage(q.Name, f.today())
		},
	}.Serve(f.Cluster, w, r)
}

// readQuota answers GET /v1/quota/NAME.
func (f *face) readQuota(w http.ResponseWriter, r *http.Request) error {
	find := func(_ answer.Query, s answer.Snapshot) (*tenancy.QuotaSpec, uint64) {
		if q := s.Quota(r.PathValue("name")); q != nil {
			return q, q.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.Quotas}, "quota", find)
}

// readQuotaUsage answers GET /v1/quota-usage/NAME.
func (f *face) readQuotaUsage(w http.ResponseWriter, r *http.Request) error {
	find := func(_ answer.Query, s answer.Snapshot) (*tenancy.QuotaUsage, uint64) {
		if u := s.QuotaUsage(r.PathValue("name"), f.today()); u != nil {
			return u, u.ModifyIndex
		}
		return nil, 0
	}
	return answer.Single(f.Cluster, w, r, answer.Source{Table: tables.QuotaUsages}, "quota", find)
}

// upsertQuota answers PUT /v1/quota and PUT /v1/quota/NAME.
func (f *face) upsertQuota(w http.ResponseWriter, r *http.Request) error {
	var q tenancy.QuotaSpec // strictly: a limit with a typo would limit nothing
	if err := httpapi.DecodeStrictJSON(r, &q); err != nil {
		return err
	}
	if name := r.PathValue("name"); name != "" && q.Name != name {
		return drover.Errorf(drover.Invalid, "Quota name does not match request path")
	}
	o, err := f.Intake.UpsertQuota(r.Context(), &q)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}

// deleteQuota answers DELETE /v1/quota/NAME; one that a namespace refers to stays.
func (f *face) deleteQuota(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.DeleteQuota(r.Context(), r.PathValue("name"))
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}
