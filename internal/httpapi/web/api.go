package web

import (
	"context"
	"net/http"

	"github.com/drover-project/drover/internal/httpapi/web/asking"
)

// api asks the API in this process.
func (f *Face) api() asking.API { return asking.API{Handler: f.API} }

func (f *Face) ask(ctx context.Context, viewer *http.Request, method, path string, in, out any) error {
	return f.api().Ask(ctx, viewer, method, path, in, out)
}

func (f *Face) read(r *http.Request, path string, out any) (http.Header, error) {
	return f.api().Read(r, path, out)
}

func (f *Face) follow(ctx context.Context, viewer *http.Request, path string, to func([]byte) error) error {
	return f.api().Follow(ctx, viewer, path, to)
}

func (f *Face) pass(w http.ResponseWriter, viewer *http.Request, path string) error {
	return f.api().Pass(w, viewer, path)
}

// apiPath is a path of the API with its variable parts escaped.
func apiPath(parts ...string) string { return asking.Path(parts...) }
