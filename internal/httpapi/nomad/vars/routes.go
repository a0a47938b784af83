package vars

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
	"github.com/drover-project/drover/secrets"
)

// Variables has the use cases; control/variables implements it. Errors carry drover codes and Nomad's texts ("variable not found"); what
// is in the way of a write is a *secrets.Conflict. Writes return the index at which they were committed.
type Variables interface {
	Get(ctx context.Context, who *rights.Caller, namespace, path string) (*secrets.Variable, error)
	List(who *rights.Caller, namespace, prefix string) []*secrets.VariableMetadata
	Put(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.Variable, uint64, error)
	Delete(ctx context.Context, who *rights.Caller, w secrets.Write) (uint64, error)
	Lock(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.Variable, uint64, error)
	Renew(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.VariableMetadata, error)
	Release(ctx context.Context, who *rights.Caller, w secrets.Write) (*secrets.Variable, uint64, error)
}

// Config is what the group needs beside the cluster.
type Config struct{ Variables Variables }

// face answers the group's requests.
type face struct {
	*answer.Cluster
	Config
}

// Routes lists the group's routes.
func Routes(c *answer.Cluster, cfg Config) []httpapi.Route {
	f := &face{c, cfg}
	lists := httpapi.Filtered("the variables that a rule for their path lets the caller list")
	reads := httpapi.Filtered("the variable to whom a rule for its path gives read")
	writes := httpapi.Filtered("Permission denied to whom no rule for the path gives write")
	destroys := httpapi.Filtered("Permission denied to whom no rule for the path gives destroy")
	return []httpapi.Route{
		{Pattern: "GET /v1/vars", Where: httpapi.Reads, Need: lists, Handle: f.list},
		{Pattern: "GET /v1/var/{path...}", Where: httpapi.Reads, Need: reads, Handle: f.read},
		{Pattern: "PUT,POST /v1/var/{path...}", Where: httpapi.Leader, Need: writes, Handle: f.write},
		{Pattern: "DELETE /v1/var/{path...}", Where: httpapi.Leader, Need: destroys, Handle: f.remove},
	}
}

// list answers GET /v1/vars.
func (f *face) list(w http.ResponseWriter, r *http.Request) error {
	return answer.Lister[*secrets.VariableMetadata, *secrets.VariableMetadata]{
		On: []answer.Source{{Table: tables.Variables}},
		Items: func(q answer.Query, _ answer.Snapshot) iter.Seq[*secrets.VariableMetadata] {
			return slices.Values(f.Variables.List(httpapi.CallerOf(r.Context()), q.Namespace, q.Prefix))
		},
		ID:   func(v *secrets.VariableMetadata) string { return v.Namespace + "." + v.Path },
		View: func(v *secrets.VariableMetadata, _ answer.Snapshot) *secrets.VariableMetadata { return v },
		Sees: answer.Everybody[*secrets.VariableMetadata], // Items asks
	}.Serve(f.Cluster, w, r)
}

// read answers GET /v1/var/PATH, blocking if asked. What there is not is watched with the whole table: rows that never come would be
// watched for ever.
func (f *face) read(w http.ResponseWriter, r *http.Request) error {
	q, err := f.ParseQuery(r)
	if err != nil {
		return err
	}
	namespace, path, ctx := answer.Namespace(r), r.PathValue("path"), r.Context()
	get := func() (*secrets.Variable, error) { return f.Variables.Get(ctx, httpapi.CallerOf(ctx), namespace, path) }
	on := answer.Source{Table: tables.Variables, Key: tables.JobKey(namespace, path)}
	switch _, err := get(); {
	case drover.CodeOf(err) == drover.NotFound:
		on.Key = ""
	case err != nil:
		return err
	}
	_, index, err := f.Await(ctx, q, []answer.Source{on}, func(s answer.Snapshot) uint64 {
		if v, err := get(); err == nil {
			return v.ModifyIndex
		}
		return s.TableIndex(on.Table)
	})
	if err != nil {
		return err
	}
	v, err := get()
	f.SetIndex(w, index)
	if err != nil {
		return err
	}
	return httpapi.WriteJSON(w, r, http.StatusOK, v)
}

// wish is what a write wants.
type wish struct {
	secrets.Write
	op string // "", lock-acquire, lock-renew, lock-release
}

// parse reads path, namespace, query and, where there is one, the body of a write.
func parse(r *http.Request) (w wish, err error) {
	q, v := r.URL.Query(), &secrets.Variable{}
	for _, op := range []string{"lock-acquire", "lock-renew", "lock-release"} {
		if q.Has(op) && w.op != "" {
			return w, drover.Errorf(drover.Invalid, "%s and %s: give one of them", w.op, op)
		}
		if q.Has(op) {
			w.op = op
		}
	}
	if q.Has("cas") {
		n, err := strconv.ParseUint(q.Get("cas"), 10, 64)
		switch {
		case err != nil:
			return w, drover.Errorf(drover.Invalid, "can not parse cas: must be an index, got %q", q.Get("cas"))
		case w.op != "":
			return w, drover.Errorf(drover.Invalid, "CAS can't be used with lock operations")
		}
		w.Check = &n
	}
	if r.Method != http.MethodDelete {
		if err := httpapi.DecodeJSON(r, v); err != nil {
			return w, err
		}
	}
	path, namespace := r.PathValue("path"), answer.Namespace(r)
	if v.Path != "" && v.Path != path {
		return w, drover.Errorf(drover.Invalid, "variable path does not match request path")
	}
	switch asked := q.Get("namespace"); {
	case v.Namespace != "" && asked != "" && asked != v.Namespace:
		return w, drover.Errorf(drover.Invalid, "the namespace of the body, %q, is not that of the request, %q", v.Namespace, asked)
	case v.Namespace == "":
		v.Namespace = namespace
	}
	if v.Namespace == "*" {
		return w, drover.Errorf(drover.Invalid, "namespace: a variable is in one, not in all")
	}
	v.Path, w.Var = path, v
	return w, nil
}

// write answers PUT /v1/var/PATH: a write, or an operation of a lock.
func (f *face) write(w http.ResponseWriter, r *http.Request) error {
	x, err := parse(r)
	if err != nil {
		return err
	}
	ctx := r.Context()
	var v any
	var index uint64
	switch who := httpapi.CallerOf(ctx); x.op {
	case "lock-acquire":
		v, index, err = f.Variables.Lock(ctx, who, x.Write)
	case "lock-renew":
		v, err = f.Variables.Renew(ctx, who, x.Write)
		index = f.State.Snapshot().TableIndex(tables.Variables) // nothing was written
	case "lock-release":
		v, index, err = f.Variables.Release(ctx, who, x.Write)
	default:
		v, index, err = f.Variables.Put(ctx, who, x.Write)
	}
	if done, err := f.refused(w, r, err); done || err != nil {
		return err
	}
	return f.Written(w, r, drover.Outcome{Index: index}, v)
}

// remove answers DELETE /v1/var/PATH.
func (f *face) remove(w http.ResponseWriter, r *http.Request) error {
	x, err := parse(r)
	if err != nil {
		return err
	}
	if id := r.URL.Query().Get("lock"); id != "" {
		x.Var.Lock = &secrets.VariableLock{ID: id}
	}
	index, err := f.Variables.Delete(r.Context(), httpapi.CallerOf(r.Context()), x.Write)
	if done, err := f.refused(w, r, err); done || err != nil {
		return err
	}
	f.SetIndex(w, index)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// refused answers a conflict with what is in the way.
func (f *face) refused(w http.ResponseWriter, r *http.Request, err error) (done bool, _ error) {
	var conflict *secrets.Conflict
	if !errors.As(err, &conflict) {
		return false, err
	}
	return true, httpapi.WriteJSON(w, r, http.StatusConflict, conflict.Var)
}
