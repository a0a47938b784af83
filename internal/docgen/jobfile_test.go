package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/stretchr/testify/require"
)

// TestEachFieldOfNomadsJobStandsInTheTable: what Nomad's client can send is done, refused or warned of, and never dropped
// without a word.
func TestEachFieldOfNomadsJobStandsInTheTable(t *testing.T) {
	t.Parallel()
	fields := fieldsOfJob()
	stands := map[string]bool{}
	for _, f := range fields {
		require.False(t, stands[f.path], "%s stands there twice", f.path)
		stands[f.path] = true
	}
	seen := 0
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		for i := range of.NumField() {
			f := of.Field(i)
			at := strings.TrimPrefix(path+"."+f.Name, ".")
			below := blockType(f.Type)
			_, tag, _ := strings.Cut(f.Tag.Get("json"), "-")
			switch {
			case path == "" && slices.Contains(serverSet, f.Name), f.Tag.Get("json") == "-", tag == "-":
			case stands[at]:
				seen++
			case below != nil:
				walk(at, below)
			default:
				t.Errorf("Nomad's job has %s, of which nothing is said: carry it out, or add it to a table of unheeded.All", at)
			}
		}
	}
	walk("", reflect.TypeFor[api.Job]())
	require.Greater(t, seen, 200)
}

// TestEveryRowIsAField: a row whose field is gone is a promise about nothing.
func TestEveryRowIsAField(t *testing.T) {
	t.Parallel()
	var fates [3]int
	for _, f := range fieldsOfJob() {
		fates[f.fate]++
		require.Equal(t, f.fate != works, f.why != "", f.path)
	}
	require.Greater(t, fates[works], 150)
	require.Greater(t, fates[ignored], 15)
	require.GreaterOrEqual(t, fates[refused], 10)
}
