package acl

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// nouns are ours beside those of Nomad's client.
var nouns = []struct{ ours, theirs any }{
	{&Token{}, &api.ACLToken{}},
	{&TokenStub{}, &api.ACLTokenListStub{}},
	{&TokenRole{}, &api.ACLTokenRoleLink{}},
	{&OneTimeToken{}, &api.OneTimeToken{}},
	{&OneTimeTokenMade{}, &api.OneTimeTokenUpsertResponse{}},
	{&OneTimeTokenExchange{}, &api.OneTimeTokenExchangeRequest{}},
	{&OneTimeTokenExchanged{}, &api.OneTimeTokenExchangeResponse{}},
	{&BootstrapRequest{}, &api.BootstrapRequest{}},
	{&Policy{}, &api.ACLPolicy{}},
	{&PolicyStub{}, &api.ACLPolicyListStub{}},
	{&JobACL{}, &api.JobACL{}},
	{&Role{}, &api.ACLRole{}},
	{&RoleStub{}, &api.ACLRoleListStub{}},
	{&AuthMethod{}, &api.ACLAuthMethod{}},
	{&AuthMethodConfig{}, &api.ACLAuthMethodConfig{}},
	{&ClientAssertion{}, &api.OIDCClientAssertion{}},
	{&ClientAssertionKey{}, &api.OIDCClientAssertionKey{}},
	{&AuthMethodStub{}, &api.ACLAuthMethodListStub{}},
	{&BindingRule{}, &api.ACLBindingRule{}},
	{&BindingRuleStub{}, &api.ACLBindingRuleListStub{}},
}

// fill gives every field a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*n), 5).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(fmt.Sprint("k", *n)), reflect.ValueOf(fmt.Sprint("v", *n)))
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(int64(*n) * int64(time.Minute))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(*n % 200))
	default:
		panic(v.Type())
	}
}

// TestTheWireIsNomads: what Nomad's client writes we read and write again without a loss, and the other way round. We have a hash beside.
func TestTheWireIsNomads(t *testing.T) {
	t.Parallel()
	for _, noun := range nouns {
		name := reflect.TypeOf(noun.ours).Elem().Name()
		n := 0
		fill(reflect.ValueOf(noun.theirs).Elem(), &n)
		sent, err := json.Marshal(noun.theirs)
		require.NoError(t, err, name)
		require.NoError(t, json.Unmarshal(sent, noun.ours), "%s: %s", name, sent)
		back, err := json.Marshal(noun.ours)
		require.NoError(t, err, name)
		again := reflect.New(reflect.TypeOf(noun.theirs).Elem()).Interface()
		require.NoError(t, json.Unmarshal(back, again), name)
		require.Equal(t, noun.theirs, again, "%s: %s", name, back)

		ours, theirs := reflect.TypeOf(noun.ours).Elem(), reflect.TypeOf(noun.theirs).Elem()
		for i := range ours.NumField() {
			if field := ours.Field(i).Name; field != "Hash" && ours.Field(i).Tag.Get("json") != "-" {
				_, has := theirs.FieldByName(field)
				require.True(t, has, "%s.%s is not Nomad's", name, field)
			}
		}
	}
}

// TestEmptyTokens have no field that a client would stumble over.
func TestEmptyTokens(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(&Token{AccessorID: "a", SecretID: "s", Type: ManagementToken})
	require.NoError(t, err)
	require.JSONEq(t, `{"AccessorID":"a","SecretID":"s","Name":"","Type":"management","Policies":null,"Roles":null,"Global":false,
		"CreateTime":"0001-01-01T00:00:00Z","CreateIndex":0,"ModifyIndex":0}`, string(text))
	var token Token
	require.NoError(t, json.Unmarshal([]byte(`{"ExpirationTTL":"8h"}`), &token))
	require.Equal(t, TTL(8*time.Hour), token.ExpirationTTL)
	require.NoError(t, json.Unmarshal([]byte(`{"ExpirationTTL":60000000000}`), &token))
	require.Equal(t, TTL(time.Minute), token.ExpirationTTL)
	for _, zero := range []string{`""`, `null`} {
		var ttl TTL
		require.NoError(t, json.Unmarshal([]byte(zero), &ttl))
		require.Zero(t, ttl)
	}
	require.ErrorContains(t, json.Unmarshal([]byte(`{"ExpirationTTL":"8 hours"}`), &token), `a lifetime such as "8h" is wanted`)
	require.ErrorContains(t, json.Unmarshal([]byte(`{"ExpirationTTL":[]}`), &token), "is wanted, got []")
}

// TestSecretsDoNotPrint: whatever prints a token, or what holds one, does not print what is secret of it.
func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	const secret = "3f4a0fcd-7c42-773c-25db-2d31ba0c05fe"
	token := &Token{AccessorID: "accessor", SecretID: secret, Name: "ci", Type: ClientToken}
	once := &OneTimeToken{AccessorID: "accessor", OneTimeSecretID: secret}
	held := []any{
		token, *token, once, *once, token.SecretID,
		BootstrapRequest{secret},
		&OneTimeTokenExchange{secret},
		OneTimeTokenMade{once},
		AuthMethodConfig{OIDCClientSecret: secret},
		ClientAssertionKey{PemKey: secret},
		map[string]any{"t": *token},
		[]Token{*token},
		struct{ Token Token }{*token},
	}
	var out strings.Builder
	for _, v := range held {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	fmt.Fprintln(&out, token.SecretID.String(), fmt.Errorf("x %w", fmt.Errorf("of %v", token.SecretID)))
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(h)
		log.Info("made", "token", token, "once", once, "none", (*Token)(nil), "neither", (*OneTimeToken)(nil))
	}
	require.NotContains(t, out.String(), secret)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", secret))
	require.Contains(t, out.String(), "(secret)")
	require.Contains(t, out.String(), "accessor=accessor")
	require.Empty(t, fmt.Sprintf("%v%s", Secret(""), Secret("")), "that there is none may be seen")

	told, err := json.Marshal([]any{token.WithoutSecret(), token.Stub()})
	require.NoError(t, err)
	require.NotContains(t, string(told), secret)
	require.NotContains(t, string(told), "SecretID")
	require.Equal(t, Secret(secret), token.SecretID)
}

// TestStubsAndCopies: a stub has all that the list needs, a copy shares nothing.
func TestStubsAndCopies(t *testing.T) {
	t.Parallel()
	for _, noun := range []any{&Token{}, &Policy{}, &Role{}, &AuthMethod{}, &BindingRule{}} {
		n := 0
		of := reflect.ValueOf(noun)
		fill(of.Elem(), &n)
		stub := of.MethodByName("Stub").Call(nil)[0].Elem()
		for i := range stub.NumField() {
			name := stub.Type().Field(i).Name
			require.Equal(t, of.Elem().FieldByName(name).Interface(), stub.Field(i).Interface(), "%T.%s", noun, name)
		}
		if m := of.MethodByName("Copy"); m.IsValid() {
			copied := m.Call(nil)[0]
			require.Equal(t, noun, copied.Interface())
			shares(t, of.Elem(), copied.Elem(), fmt.Sprintf("%T", noun))
		}
	}
}

// shares fails where both values point to the same memory.
func shares(t *testing.T, a, b reflect.Value, path string) {
	switch a.Kind() {
	case reflect.Pointer:
		require.NotEqual(t, a.Pointer(), b.Pointer(), path)
		shares(t, a.Elem(), b.Elem(), path)
	case reflect.Slice:
		require.NotEqual(t, a.Pointer(), b.Pointer(), path)
		for i := range a.Len() {
			shares(t, a.Index(i), b.Index(i), path)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type() != reflect.TypeFor[time.Time]() {
				shares(t, a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)
			}
		}
	default:
	}
}
