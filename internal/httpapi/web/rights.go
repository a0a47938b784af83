package web

import (
	"cmp"
	"context"
	"net/http"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/policy"
)

// known is what was asked about the viewer's rights while a page is made, by namespace. A request has one goroutine.
type known map[string]*acl.Levels

type knownKey struct{}

// remembering has a request ask for its viewer's rights once.
func remembering(handle httpapi.Handle) httpapi.Handle {
	return func(w http.ResponseWriter, r *http.Request) error {
		return handle(w, r.WithContext(context.WithValue(r.Context(), knownKey{}, known{})))
	}
}

// rights are what the viewer may do with the parts of the cluster, in some namespace, and in the one that is named; "" stands for any that
// was asked about. It is nil if that is not known.
func (f *Face) rights(r *http.Request, namespace string) *acl.Levels {
	asked, _ := r.Context().Value(knownKey{}).(known)
	for of, l := range asked {
		if namespace == "" || of == namespace {
			return l
		}
	}
	namespace = cmp.Or(namespace, anywhere)
	levels := &acl.Levels{}
	err := f.ask(r.Context(), r, http.MethodGet, inNamespace(apiPath("rights"), namespace), nil, levels)
	switch status := httpapi.Status(err); {
	case err == nil:
	case status == http.StatusUnauthorized || status == http.StatusForbidden: // whose token is refused may do nothing
		levels = &acl.Levels{Namespace: namespace}
	default:
		levels = nil
	}
	if asked != nil {
		asked[namespace] = levels
	}
	return levels
}

// anywhere is some namespace, whichever.
const anywhere = "*"

// may reports whether the viewer has all of the capabilities in the namespace, as far as that is known: what the page offers in error the
// API refuses.
func (f *Face) may(r *http.Request, namespace string, all ...policy.Capability) bool {
	if namespace == anywhere {
		return somewhere(f.rights(r, ""), all...)
	}
	l := f.rights(r, namespace)
	if l == nil || l.Namespace != namespace { // a server of an older version does not say
		return true
	}
	for _, c := range all {
		if !l.May(c.String()) {
			return false
		}
	}
	return true
}

// somewhere reports whether all of the capabilities are given in some namespace, as far as that is known.
func somewhere(l *acl.Levels, all ...policy.Capability) bool {
	if l == nil || l.Namespace == "" {
		return true
	}
	for _, c := range all {
		if !l.MaySomewhere(c.String()) {
			return false
		}
	}
	return true
}

// jobNeeds are what the actions on a job need in its namespace.
var jobNeeds = map[string][]policy.Capability{
	"stop": {policy.DeregisterJob}, "purge": {policy.DeregisterJob, policy.PurgeJob}, "start": {policy.ReadJob, policy.RegisterJob},
	"evaluate": {policy.EvaluateJob}, "force": {policy.ForcePeriodicJob}, "scale": {policy.ScaleJob}, "dispatch": {policy.DispatchJob},
	"revert": {policy.RevertJob}, "promote": {policy.PromoteDeployment}, "pause": {policy.PauseDeployment},
	"resume": {policy.PauseDeployment}, "fail": {policy.FailDeployment},
}

// plansJobs is what the editor of a job file needs.
var plansJobs = []policy.Capability{policy.ParseJob, policy.PlanJob}
