package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/drover-project/drover"
)

// MaxFiles bounds a JSON body with files in it, in bytes, where a face is not told otherwise.
const MaxFiles = 256 << 20

// DecodeJSON reads the whole body as one JSON value into v. Unknown fields are ignored, as clients newer than we are send them.
// A wrong type is Invalid and names the field; a body over its limit is TooLarge; an empty one is Invalid.
func DecodeJSON(r *http.Request, v any) error {
	err := decodeJSON(r.Body, v)
	if errors.Is(err, io.EOF) {
		return drover.Errorf(drover.Invalid, "the request has no body; JSON is expected")
	}
	return err
}

// ReadBody reads the whole body. Errors: TooLarge, Invalid.
func ReadBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, bodyError(err, nil)
	}
	return body, nil
}

// DecodeStrictJSON is DecodeJSON, but refuses fields that v does not have, and text that is not UTF-8. Errors: Invalid,
// TooLarge.
func DecodeStrictJSON(r *http.Request, v any) error {
	err := decodeStrict(r.Body, v)
	if errors.Is(err, io.EOF) {
		return drover.Errorf(drover.Invalid, "the request has no body; JSON is expected")
	}
	return err
}

// UnmarshalStrict is DecodeStrictJSON for a text that was received otherwise.
func UnmarshalStrict(text []byte, v any) error {
	err := decodeStrict(bytes.NewReader(text), v)
	if errors.Is(err, io.EOF) {
		return drover.Errorf(drover.Invalid, "it is empty; JSON is expected")
	}
	return err
}

// decodeStrict decodes one value and refuses fields that v does not have. Errors: as decodeWith.
func decodeStrict(body io.Reader, v any) error {
	if body == nil {
		return io.EOF
	}
	return decodeWith(&textReader{r: body}, v, (*json.Decoder).DisallowUnknownFields)
}

// DecodeOptionalJSON is DecodeJSON, but leaves v alone when there is no body.
func DecodeOptionalJSON(r *http.Request, v any) error {
	err := decodeJSON(r.Body, v)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func decodeJSON(body io.Reader, v any) error { return decodeWith(body, v, func(*json.Decoder) {}) }

// decodeWith decodes one value as it comes in. Only if a duration is a text it rewrites the body and decodes again, as most bodies have
// none. Errors: io.EOF without a body, else those of bodyError.
func decodeWith(body io.Reader, v any, set func(*json.Decoder)) error {
	if body == nil {
		return io.EOF
	}
	var seen bytes.Buffer
	err := decodeText(io.TeeReader(body, &seen), v, set)
	if spelledDuration(err) {
		if _, err = seen.ReadFrom(body); err == nil {
			var text []byte
			if text, err = numberDurations(seen.Bytes(), v); err == nil {
				err = decodeText(bytes.NewReader(text), v, set)
			}
		}
	}
	if err == nil || errors.Is(err, io.EOF) || drover.CodeOf(err) == drover.Invalid {
		return err
	}
	return bodyError(err, v)
}

// decodeText decodes one JSON value. Errors: io.EOF (not ErrUnexpectedEOF) when there is none; Invalid when more follows
// it; those of text and of encoding/json.
func decodeText(text io.Reader, v any, set func(*json.Decoder)) error {
	d := json.NewDecoder(text)
	set(d)
	if err := d.Decode(v); err != nil {
		return err
	}
	_, err := d.Token()
	if _, malformed := errors.AsType[*json.SyntaxError](err); err == nil || malformed {
		return drover.Errorf(drover.Invalid, "the body has something behind its JSON value (at byte %d)", d.InputOffset())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// bodyError says what is wrong with a body that was to become v in words that help who wrote it.
func bodyError(err error, v any) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLargeError(e.Limit)
	}
	if e, ok := errors.AsType[*drover.Error](err); ok { // of countedBody
		return e
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := withoutEmbedded(e.Field, v)
		if field == "" {
			return drover.Errorf(drover.Invalid, "the body is a JSON %s, but %s is expected", e.Value, kind(e.Type.String()))
		}
		return drover.Errorf(drover.Invalid, "%s: got a JSON %s, but %s is expected", field, e.Value, kind(e.Type.String()))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return drover.Errorf(drover.Invalid, "malformed JSON at byte %d: %w", e.Offset, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return drover.Errorf(drover.Invalid, "malformed JSON: it ends too early")
	}
	if unknown, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return drover.Errorf(drover.Invalid, "unknown field %s", unknown)
	}
	return drover.Errorf(drover.Invalid, "reading the body: %w", err)
}

// tooLargeError is the same for a body whose length was announced and for one that turned out to be too long.
func tooLargeError(limit int64) error {
	return drover.Errorf(drover.TooLarge, "the body is larger than %d bytes", limit)
}

// withoutEmbedded drops the names of embedded structs from a field's path, which those who write JSON don't know.
func withoutEmbedded(path string, v any) string {
	t := reflect.TypeOf(v)
	for {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		first, rest, deeper := strings.Cut(path, ".")
		if !deeper || t.Kind() != reflect.Struct {
			return path
		}
		f, ok := t.FieldByName(first)
		if !ok || !f.Anonymous {
			return path
		}
		path, t = rest, f.Type
	}
}

// kind names a Go type in JSON's words.
func kind(goType string) string {
	t := strings.TrimLeft(goType, "*")
	switch {
	case t == "string":
		return "a string"
	case t == "bool":
		return "true or false"
	case t == "time.Duration":
		return "a number of nanoseconds, or a text such as \"1m30s\","
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number that fits " + t
	case strings.HasPrefix(t, "float"):
		return "a number"
	case strings.HasPrefix(t, "[]byte"), t == "[]uint8":
		return "a base64 string"
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "map["):
		return "an object"
	}
	return "an object"
}

// WriteJSON answers with status and v. "pretty" in the query indents it, as in Nomad.
func WriteJSON(w http.ResponseWriter, r *http.Request, status int, v any) error {
	buf, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	writeText(w, r, status, buf)
	return nil
}

// Appender is what an answer is that can write itself as JSON, as encoding/json would.
type Appender interface {
	AppendJSON(to []byte) ([]byte, error)
}

// WriteAppended is WriteJSON for an answer that is given so often that encoding/json is felt.
func WriteAppended(w http.ResponseWriter, r *http.Request, status int, v Appender) error {
	buf, err := v.AppendJSON(make([]byte, 0, 512))
	if err != nil {
		return fmt.Errorf("encoding the answer: %w", err)
	}
	writeText(w, r, status, buf)
	return nil
}

// writeText answers with a JSON text.
func writeText(w http.ResponseWriter, r *http.Request, status int, buf []byte) {
	if Pretty(r) {
		var out bytes.Buffer
		if json.Indent(&out, buf, "", "    ") == nil {
			out.WriteByte('\n')
			buf = out.Bytes()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(buf))) // then an error is whole though its request's body is still read
	w.WriteHeader(status)
	_, _ = w.Write(buf) // fails only when the client is gone
}

// Pretty reports whether the query asks for indented JSON: "pretty" with any value but "0" and "false".
func Pretty(r *http.Request) bool {
	if r.URL.RawQuery == "" {
		return false
	}
	q := r.URL.Query()
	if !q.Has("pretty") {
		return false
	}
	v := q.Get("pretty")
	return v != "0" && v != "false"
}
