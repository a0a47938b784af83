package httpapi

import (
	"errors"
	"io"
	"net/http"

	"drover"
)

// Upload is a request's body for those who stream it on: if it cannot be read to its end, its sender is at fault, which
// its errors say (Invalid).
func Upload(r *http.Request) io.Reader { return upload{r.Body} }

type upload struct{ body io.Reader }

// Read implements io.Reader.
func (u upload) Read(p []byte) (int, error) {
	n, err := u.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) { // not ErrUnexpectedEOF
		err = drover.Errorf(drover.Invalid, "the body came in part only: %w", err)
	}
	return n, err
}
