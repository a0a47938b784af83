package openapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type colour string

type point struct{ X, Y float64 }

// textual writes itself as text.
type textual struct{ N int }

func (t textual) MarshalText() ([]byte, error) { return []byte{byte(t.N)}, nil }

type thing struct {
	point                       // flattened
	Name      string            `json:"name"`
	Colour    colour            `json:"colour,omitempty"`
	Wait      time.Duration     `json:"wait"`
	At        time.Time         `json:"at"`
	Data      []byte            `json:"data,omitempty"`
	Count     uint16            `json:"count"`
	Small     uint8             `json:"small"`
	Big       uint64            `json:"big"`
	Signed    int               `json:"signed"`
	OK        *bool             `json:"ok"`
	Labels    map[string]string `json:"labels"`
	Free      map[string]any    `json:"free"`
	List      []point           `json:"list"`
	Text      textual           `json:"text"`
	Child     *thing            `json:"child,omitempty"` // recursion
	Hidden    string            `json:"-"`
	secret    string            //nolint:unused // what is not exported is not described
	Untouched bool
}

type problem struct {
	Message string `json:"message"`
}

func document(t *testing.T, ops ...Operation) map[string]any {
	t.Helper()
	d := Document(Info{
		Title: "T", About: "A", Problem: problem{}, Required: map[string][]string{"thing": {"name"}},
		Values: map[reflect.Type][]string{reflect.TypeFor[colour](): {"red", "blue"}},
	}, ops)
	text, err := json.Marshal(d) // as clients see it
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

// at follows a path of keys.
func at(t *testing.T, v any, keys ...string) any {
	t.Helper()
	for i, k := range keys {
		m, ok := v.(map[string]any)
		require.True(t, ok && m[k] != nil, "nothing at %s", strings.Join(keys[:i+1], " "))
		v = m[k]
	}
	return v
}

func TestTypesAreDescribed(t *testing.T) {
	t.Parallel()
	d := document(t, Operation{Pattern: "PUT /v1/thing", In: thing{}, Status: 204})
	properties := at(t, d, "components", "schemas", "thing", "properties")
	for name, want := range map[string]string{
		"X":         `{"type":"number"}`,
		"name":      `{"type":"string"}`,
		"colour":    `{"type":"string","enum":["red","blue"]}`,
		"wait":      `{"type":["integer","string"],"format":"int64","description":"nanoseconds, or a text such as \"1m30s\""}`,
		"at":        `{"type":"string","format":"date-time"}`,
		"data":      `{"type":"string","contentEncoding":"base64"}`,
		"count":     `{"type":"integer","format":"int32","minimum":0,"maximum":65535}`,
		"small":     `{"type":"integer","format":"int32","minimum":0,"maximum":255}`,
		"big":       `{"type":"integer","format":"int64","minimum":0}`,
		"signed":    `{"type":"integer","format":"int64"}`,
		"ok":        `{"type":"boolean"}`,
		"labels":    `{"type":"object","additionalProperties":{"type":"string"}}`,
		"free":      `{"type":"object"}`,
		"list":      `{"type":"array","items":{"$ref":"#/components/schemas/point"}}`,
		"text":      `{"type":"string"}`,
		"child":     `{"$ref":"#/components/schemas/thing"}`,
		"Untouched": `{"type":"boolean"}`,
	} {
		got, err := json.Marshal(at(t, properties, name))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got), name)
	}
	require.Len(t, properties, 18, "what is hidden or not exported is not described")
	require.Equal(t, []any{"name"}, at(t, d, "components", "schemas", "thing", "required"), "a request needs what it is said to need")
}

// What a program always writes, never as null, may be relied on in answers; durations are numbers there.
func TestAnswersAreDescribed(t *testing.T) {
	t.Parallel()
	d := document(t, Operation{Pattern: "GET /v1/thing", Out: []thing{}, Status: 200})
	require.Equal(t, []any{"X", "Y", "name", "wait", "at", "count", "small", "big", "signed", "text", "Untouched"},
		at(t, d, "components", "schemas", "thing", "required"))
	require.Equal(t, "integer", at(t, d, "components", "schemas", "thing", "properties", "wait", "type"))
	content := at(t, d, "paths", "/v1/thing", "get", "responses", "200", "content", "application/json", "schema")
	require.Equal(t, map[string]any{"type": "array", "items": map[string]any{"$ref": "#/components/schemas/thing"}}, content)
}

func TestOperationsAreDescribed(t *testing.T) {
	t.Parallel()
	d := document(t,
		Operation{
			Pattern: "PUT,POST /v1/thing/{id}/part/{part}", Summary: "Change it", In: thing{}, Out: problem{}, Status: 201,
			Also: []int{202, 304}, Loose: true, Query: []Param{
				{Name: "wait", Kind: "string", About: "how long"},
				{Name: "label", Kind: "strings"},
				{Name: "Range", Kind: "string", Header: true},
				{Name: "mode", Kind: "string", Values: []string{"a", "b"}},
			},
		},
		Operation{Pattern: "GET /v1/thing/{id}/file", Raw: "out", Status: 200, Also: []int{206, 304}},
		Operation{Pattern: "PUT /v1/thing/{id}/file", Raw: "tar in", Status: 204},
		Operation{Pattern: "GET /v1/open.json", Open: true, Raw: "websocket", Status: 101},
	)
	put, post := at(t, d, "paths", "/v1/thing/{id}/part/{part}", "put"), at(t, d, "paths", "/v1/thing/{id}/part/{part}", "post")
	require.Equal(t, "putThingPart", at(t, put, "operationId"))
	require.Equal(t, "postThingPart", at(t, post, "operationId"))
	require.Equal(t, "Change it", at(t, put, "summary"))
	text, err := json.Marshal(at(t, put, "parameters"))
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"name":"id","in":"path","required":true,"schema":{"type":"string"}},
		{"name":"part","in":"path","required":true,"schema":{"type":"string"}},
		{"name":"wait","in":"query","description":"how long","schema":{"type":"string"}},
		{"name":"label","in":"query","description":"","schema":{"type":"array","items":{"type":"string"}}},
		{"name":"Range","in":"header","description":"","schema":{"type":"string"}},
		{"name":"mode","in":"query","description":"","schema":{"type":"string","enum":["a","b"]}}]`, string(text))
	require.Equal(t, false, put.(map[string]any)["requestBody"].(map[string]any)["required"])
	for status, body := range map[string]bool{"201": true, "202": true, "304": false} {
		answer := at(t, put, "responses", status).(map[string]any)
		require.Equal(t, body, answer["content"] != nil, status)
		require.NotEmpty(t, answer["description"])
	}
	ref := map[string]any{"$ref": "#/components/responses/Problem"}
	require.Equal(t, ref, at(t, put, "responses", "default"))
	require.Equal(t, ref, at(t, put, "responses", "401"))

	file := at(t, d, "paths", "/v1/thing/{id}/file")
	require.NotNil(t, at(t, file, "get", "responses", "206", "content", "application/octet-stream"))
	require.NotNil(t, at(t, file, "put", "requestBody", "content", "application/x-tar"))
	open := at(t, d, "paths", "/v1/open.json", "get").(map[string]any)
	require.Equal(t, "getOpenjson", open["operationId"])
	require.Equal(t, []any{}, open["security"], "it needs no token")
	require.NotContains(t, open["responses"], "401")
	require.NotContains(t, open["responses"].(map[string]any)["101"], "content", "a websocket's messages are described in words")
	require.Equal(t, http.StatusText(http.StatusSwitchingProtocols), at(t, open, "responses", "101", "description"))
}

// The whole of a document is what OpenAPI's readers look for.
func TestADocumentsFrame(t *testing.T) {
	t.Parallel()
	d := document(t)
	require.Equal(t, "3.1.0", d["openapi"])
	require.Equal(t, "T", at(t, d, "info", "title"))
	require.Equal(t, "A", at(t, d, "info", "description"))
	require.Empty(t, d["paths"])
	require.Equal(t, "X-Drover-Token", at(t, d, "components", "securitySchemes", "token", "name"))
	require.Equal(t, "#/components/schemas/problem",
		at(t, d, "components", "responses", "Problem", "content", "application/json", "schema", "$ref"))
}
