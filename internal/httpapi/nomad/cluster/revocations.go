package cluster

import (
	"context"
	"iter"
	"net/http"

	"github.com/drover-project/drover"
	clusternoun "github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/policy"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// Revoking has certificates refused, and takes that back.
type Revoking interface {
	RevokeCertificate(ctx context.Context, q clusternoun.RevokeRequest) (*clusternoun.Revocation, drover.Outcome, error)
	ReinstateCertificate(ctx context.Context, id string) (drover.Outcome, error)
}

// revocationRoutes lists the routes of certificates that are refused, which Nomad has not.
func (f *face) revocationRoutes() []httpapi.Route {
	read, write := httpapi.Level(policy.Operator, policy.Read), httpapi.Level(policy.Operator, policy.Write)
	return []httpapi.Route{
		{Pattern: "GET /v1/operator/tls/revocations", Where: httpapi.Reads, Need: read, Handle: f.listRevocations},
		{Pattern: "PUT,POST /v1/operator/tls/revocations", Where: httpapi.Leader, Need: write, Handle: f.revoke},
		{Pattern: "DELETE /v1/operator/tls/revocation/{id}", Where: httpapi.Leader, Need: write, Handle: f.reinstate},
	}
}

// listRevocations answers GET /v1/operator/tls/revocations.
func (f *face) listRevocations(w http.ResponseWriter, r *http.Request) error {
	id := func(r *clusternoun.Revocation) string { return r.ID }
	return answer.Lister[*clusternoun.Revocation, *clusternoun.Revocation]{
		On:    []answer.Source{{Table: tables.Revocations}},
		Items: func(_ answer.Query, s answer.Snapshot) iter.Seq[*clusternoun.Revocation] { return s.Revocations() },
		ID:    id, Keep: answer.HasPrefix(r, id), Sees: func(*rights.Caller, *clusternoun.Revocation) bool { return true },
		View: func(r *clusternoun.Revocation, _ answer.Snapshot) *clusternoun.Revocation { return r },
	}.Serve(f.Cluster, w, r)
}

// revoke answers PUT /v1/operator/tls/revocations.
func (f *face) revoke(w http.ResponseWriter, r *http.Request) error {
	var q clusternoun.RevokeRequest // strictly: a field with a typo would refuse for another time than was meant
	if err := httpapi.DecodeStrictJSON(r, &q); err != nil {
		return err
	}
	done, o, err := f.Intake.RevokeCertificate(r.Context(), q)
	if err != nil {
		return err
	}
	return f.Written(w, r, o, done)
}

// reinstate answers DELETE /v1/operator/tls/revocation/ID.
func (f *face) reinstate(w http.ResponseWriter, r *http.Request) error {
	o, err := f.Intake.ReinstateCertificate(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return f.Written(w, r, o, struct{}{})
}
