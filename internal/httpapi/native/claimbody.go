package native

import (
	"bytes"
	"net/http"

	"github.com/drover-project/drover/internal/httpapi"
)

// maxPlainBody is the most bytes of a body that may name an environment and nothing else.
const maxPlainBody = 512

// readClaim decodes the body of a claim. Most name an environment and nothing else. Those are read without reflection: what
// encoding/json needs of the type is seldom in the processor's cache, which took a tenth of a claim's time. Errors: those of
// httpapi.DecodeStrictJSON.
func readClaim(r *http.Request) (body ClaimBody, err error) {
	if r.ContentLength <= 0 || r.ContentLength > maxPlainBody {
		err = httpapi.DecodeStrictJSON(r, &body)
		return body, err
	}
	text, err := httpapi.ReadBody(r)
	if err != nil {
		return body, err
	}
	if environment, ok := plainClaim(text); ok {
		body.Environment = environment
		return body, nil
	}
	err = httpapi.DecodeStrictJSON(withBody(r, text), &body)
	return body, err
}

// plainClaim returns the environment of a body that is written as clients write it, and has nothing else.
func plainClaim(text []byte) (environment string, ok bool) {
	name, begins := bytes.CutPrefix(text, []byte(`{"environment":"`))
	name, ends := bytes.CutSuffix(bytes.TrimSuffix(name, []byte("\n")), []byte(`"}`))
	if !begins || !ends {
		return "", false
	}
	for _, c := range name {
		if c < ' ' || c == '"' || c == '\\' || c > '~' {
			return "", false
		}
	}
	return string(name), true
}
