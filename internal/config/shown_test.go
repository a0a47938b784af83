package config

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fill sets every text of a configuration to its path, so that a test sees which ones come out again. Blocks and lists
// get one element.
func fill(v reflect.Value, path string, texts map[string]string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("at " + path)
		texts["at "+path] = path
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), path, texts)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), path+"."+f.Name, texts)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path, texts)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, path, texts)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	default: // numbers and switches are no secrets
	}
}

// No secret of any block comes out, and everything else does.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	a, texts := &Agent{}, map[string]string{}
	fill(reflect.ValueOf(a).Elem(), "Agent", texts)
	for _, path := range []string{"Agent.APIToken", "Agent.Server.JoinToken", "Agent.Client.Machine.Tokens", "Agent.Exec.Nomad.Token"} {
		require.Contains(t, texts, "at "+path, "the test reaches every block")
	}
	out, err := json.Marshal(a.Shown())
	require.NoError(t, err)
	for text, path := range texts {
		field := path[strings.LastIndexByte(path, '.')+1:]
		if secret(field) {
			require.NotContains(t, string(out), `"`+text+`"`, "a secret is shown")
		}
	}
	for _, text := range []string{"at Agent.DataDir", "at Agent.Client.NodeClass", "at Agent.TLS.CertFile"} {
		require.Contains(t, string(out), text)
	}
}

// A service account's key may stand in the configuration itself, in place of its file's name.
func TestKeysOfKeyringsAreNotShown(t *testing.T) {
	t.Parallel()
	c := &Agent{Ports: &Ports{}, Keyrings: []*Keyring{{
		Provider: KeyringGoogle, Credentials: `{"private_key":"classified"}`, SecretKey: "classified", SessionToken: "classified",
		ClientSecret: "classified", Token: "classified",
	}}}
	text, err := json.Marshal(c.Shown())
	require.NoError(t, err)
	require.Contains(t, string(text), KeyringGoogle)
	require.NotContains(t, string(text), "classified")
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"APIToken":"a","Name":"b"}`:                 `{"APIToken":"<redacted>","Name":"b"}`,
		`{"APIToken":""}`:                             `{"APIToken":""}`,
		`{"Pools":[{"secret_key":"a"}]}`:              `{"Pools":[{"secret_key":"<redacted>"}]}`,
		`{"Tokens":["a","b"]}`:                        `{"Tokens":["<redacted>","<redacted>"]}`,
		`{"Env":{"DB_PASSWORD":"a","HOME":"/root"}}`:  `{"Env":{"DB_PASSWORD":"<redacted>","HOME":"/root"}}`,
		`{"Secrets":{"a":"b","c":{"d":"e"},"f":7}}`:   `{"Secrets":{"a":"<redacted>","c":{"d":"<redacted>"},"f":7}}`,
		`{"token_of":"no suffix","broken":"a token"}`: `{"token_of":"no suffix","broken":"a token"}`,
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(in), &v))
		redact(v)
		got, err := json.Marshal(v)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
}

func TestNamesThatNomadsClientsKnow(t *testing.T) {
	t.Parallel()
	a := Default()
	a.Name, a.Dev = "n1", true
	a.TLS = &TLS{HTTP: new(true), CertFile: "c.pem"}
	a.Advertise = &Addresses{RPC: "10.0.0.1:4647"}
	got := a.Shown()
	require.Equal(t, "n1", got["NodeName"])
	require.Equal(t, true, got["DevMode"])
	require.Equal(t, map[string]any{"Enabled": false, "ShowCLIHints": false}, got["UI"])
	require.Equal(t, Addresses{HTTP: a.HTTPAddress(), RPC: "10.0.0.1:4647", Serf: "127.0.0.1:4648"}, got["AdvertiseAddrs"])
	require.Equal(t, true, got["TLSConfig"].(map[string]any)["EnableHTTP"])
	require.Equal(t, "dc1", got["Datacenter"], "and its own names")
}

func TestAgentIsNamedAsItsMachine(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, host, (&Agent{}).AgentName())
	require.Equal(t, "x", (&Agent{Name: "x"}).AgentName())
}
