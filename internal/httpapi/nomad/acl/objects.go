package acl

import (
	"context"
	"iter"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
)

// list answers with the rows that the caller may know of, as the use case says, which change with the tables.
func list[T any](
	f *face, w http.ResponseWriter, r *http.Request, id func(T) string, rows func(who *rights.Caller, prefix string) []T, names ...string,
) error {
	l := answer.Lister[T, T]{
		Items: func(q answer.Query, _ answer.Snapshot) iter.Seq[T] {
			return slices.Values(rows(httpapi.CallerOf(r.Context()), q.Prefix))
		},
		ID:   id,
		View: func(v T, _ answer.Snapshot) T { return v },
		Sees: answer.Everybody[T], // rows asks
	}
	for _, name := range names {
		l.On = append(l.On, answer.Source{Table: name})
	}
	return l.Serve(f.Cluster, w, r)
}

// write stores the object of the body, and answers with what was stored. Where the path names one, it is that of the key; mismatch says
// that it is another's, in Nomad's words.
func write[T any](
	f *face, w http.ResponseWriter, r *http.Request, key string, id func(*T) string, mismatch string,
	store func(ctx context.Context, who *rights.Caller, v *T) (*T, uint64, error),
) error {
	v := new(T)
	if err := httpapi.DecodeJSON(r, v); err != nil {
		return err
	}
	if named := r.PathValue(key); named != "" && id(v) != named {
		return drover.Errorf(drover.Invalid, "%s", mismatch)
	}
	stored, index, err := store(r.Context(), httpapi.CallerOf(r.Context()), v)
	if err != nil {
		return err
	}
	return f.written(w, r, index, stored)
}

// remove deletes the object that the path names at the key.
func (f *face) remove(
	w http.ResponseWriter, r *http.Request, key string, do func(ctx context.Context, who *rights.Caller, ids ...string) (uint64, error),
) error {
	index, err := do(r.Context(), httpapi.CallerOf(r.Context()), r.PathValue(key))
	if err != nil {
		return err
	}
	return f.written(w, r, index, struct{}{})
}
