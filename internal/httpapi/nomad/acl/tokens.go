package acl

import (
	"iter"
	"net/http"
	"slices"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/httpapi"
	"github.com/drover-project/drover/internal/httpapi/nomad/answer"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/tables"
)

// listTokens answers GET /v1/acl/tokens.
func (f *face) listTokens(w http.ResponseWriter, r *http.Request) error {
	global, err := httpapi.BoolParam(r, "global", false)
	if err != nil {
		return err
	}
	return answer.Lister[*acl.TokenStub, *acl.TokenStub]{
		On: []answer.Source{{Table: tables.ACLTokens}},
		Items: func(q answer.Query, _ answer.Snapshot) iter.Seq[*acl.TokenStub] {
			return slices.Values(f.Access.Tokens(httpapi.CallerOf(r.Context()), q.Prefix, global))
		},
		ID:      func(t *acl.TokenStub) string { return t.AccessorID },
		Created: func(t *acl.TokenStub) uint64 { return t.CreateIndex },
		View:    func(t *acl.TokenStub, _ answer.Snapshot) *acl.TokenStub { return t },
		Sees:    answer.Everybody[*acl.TokenStub], // Items asks
	}.Serve(f.Cluster, w, r)
}

// readToken answers GET /v1/acl/token/ACCESSOR.
func (f *face) readToken(w http.ResponseWriter, r *http.Request) error {
	accessor := r.PathValue("accessor")
	return f.oneToken(w, r, accessor, func(who *rights.Caller) (*acl.Token, error) { return f.Access.Token(who, accessor) })
}

// ownToken answers GET /v1/acl/token/self.
func (f *face) ownToken(w http.ResponseWriter, r *http.Request) error {
	accessor := httpapi.CallerOf(r.Context()).Token.AccessorID
	return f.oneToken(w, r, accessor, f.Access.Self)
}

// oneToken answers with a token that is read for the caller.
func (f *face) oneToken(
	w http.ResponseWriter, r *http.Request, accessor string, read func(who *rights.Caller) (*acl.Token, error),
) error {
	on := answer.Source{Table: tables.ACLTokens, Key: accessor}
	return single(f, w, r, on, read, func(t *acl.Token) uint64 { return t.ModifyIndex })
}

// writeToken answers PUT /v1/acl/token, which makes one, and PUT /v1/acl/token/ACCESSOR, which changes or uploads one.
func (f *face) writeToken(w http.ResponseWriter, r *http.Request) error {
	var t acl.Token
	if err := httpapi.DecodeJSON(r, &t); err != nil {
		return err
	}
	write, accessor := f.Access.CreateToken, r.PathValue("accessor")
	if accessor != "" {
		write = f.Access.UpdateToken
		if t.AccessorID != accessor {
			return drover.Errorf(drover.Invalid, "Token identifier does not match request path")
		}
	}
	made, index, err := write(r.Context(), httpapi.CallerOf(r.Context()), &t)
	if err != nil {
		return err
	}
	return f.written(w, r, index, made)
}

// deleteToken answers DELETE /v1/acl/token/ACCESSOR.
func (f *face) deleteToken(w http.ResponseWriter, r *http.Request) error {
	return f.remove(w, r, "accessor", f.Access.DeleteTokens)
}

// makeOneTime answers PUT /v1/acl/token/onetime.
func (f *face) makeOneTime(w http.ResponseWriter, r *http.Request) error {
	t, index, err := f.Access.MakeOneTime(r.Context(), httpapi.CallerOf(r.Context()))
	if err != nil {
		return err
	}
	return f.written(w, r, index, acl.OneTimeTokenMade{OneTimeToken: t})
}

// exchange answers PUT /v1/acl/token/onetime/exchange.
func (f *face) exchange(w http.ResponseWriter, r *http.Request) error {
	var b acl.OneTimeTokenExchange
	if err := httpapi.DecodeJSON(r, &b); err != nil {
		return err
	}
	t, index, err := f.Access.Exchange(r.Context(), b.OneTimeSecretID)
	if err != nil {
		return err
	}
	return f.written(w, r, index, acl.OneTimeTokenExchanged{Token: t})
}
