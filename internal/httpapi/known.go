package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	"github.com/drover-project/drover"
)

// DecodeKnownJSON is DecodeJSON, and returns the name of a field that v does not have, "" if there is none: who sent it can be told. A body
// without such fields is decoded once.
func DecodeKnownJSON(r *http.Request, v any) (unknown string, err error) {
	var body []byte
	if r.Body != nil {
		if body, err = ReadBody(r); err != nil {
			return "", err
		}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return "", drover.Errorf(drover.Invalid, "the request has no body; JSON is expected")
	}
	err = decodeWith(bytes.NewReader(body), v, (*json.Decoder).DisallowUnknownFields)
	if err == nil {
		return "", nil
	}
	unknown, ok := strings.CutPrefix(err.Error(), "unknown field ")
	if !ok {
		return "", err
	}
	reflect.ValueOf(v).Elem().SetZero()
	return strings.Trim(unknown, `"`), decodeJSON(bytes.NewReader(body), v)
}
