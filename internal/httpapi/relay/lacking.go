package relay

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/drover-project/drover"
)

// unknownPaths are the beginnings of what a server answers to a path that its program does not have, as text.
var unknownPaths = []string{"no such path: ", "404 page not found"}

// lacking returns an error if the answer says that the server's program does not have the path, which this one's has. While
// servers are upgraded, the one that has to answer may be an older one. A client must not take that for the word that what it
// asks for does not exist. Errors: NotImplemented.
func lacking(to Server, r *http.Request, res *http.Response) error {
	if res.StatusCode != http.StatusNotFound || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		return nil
	}
	head := make([]byte, len(unknownPaths[1]))
	n, err := io.ReadFull(res.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	for _, begins := range unknownPaths {
		if strings.HasPrefix(string(head[:n]), begins) {
			_ = res.Body.Close() // it is short
			return drover.Errorf(
				drover.NotImplemented, "server %s, which has to answer %s %s, runs an older program that does not know it: upgrade it",
				to.Name, r.Method, r.URL.Path,
			)
		}
	}
	res.Body = begun{io.MultiReader(bytes.NewReader(head[:n]), res.Body), res.Body}
	return nil
}

// begun is a body whose beginning was read.
type begun struct {
	io.Reader
	io.Closer
}
