package command

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/fleet"
)

var updateRows = flag.Bool("command.update", false, "rewrite testdata/fleet-row.txt")

// distinct sets each field of a struct to a value of its own, so that none can be lost or exchanged.
func distinct(v reflect.Value) {
	n := 0
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous || f.Name == "Of" { // is left out where it is empty, and earlier releases do not have it
			continue
		}
		n++
		switch at := v.FieldByIndex(f.Index); {
		case at.Type() == reflect.TypeFor[time.Time]():
			at.Set(reflect.ValueOf(time.Unix(1_800_000_000+int64(n), 0).UTC()))
		case f.Name == "State":
			at.SetUint(uint64(fleet.InstanceActive))
		case at.CanUint():
			at.SetUint(uint64(n))
		case at.CanFloat():
			at.SetFloat(float64(n) + 0.5)
		default:
			at.SetString(f.Name)
		}
	}
}

// The rows of machines in the log, and what the event stream says of them, are what earlier releases wrote and read.
func TestMachinesAreWrittenAsByEarlierReleases(t *testing.T) {
	t.Parallel()
	const file = "testdata/fleet-row.txt"
	row := &fleet.InstanceRecord{}
	distinct(reflect.ValueOf(row).Elem())
	entry, err := Encode(&UpdateFleet{Put: []*fleet.InstanceRecord{row}})
	require.NoError(t, err)
	event, err := json.MarshalIndent(row, "", "\t")
	require.NoError(t, err)
	got := string(event) + "\n" + hex.EncodeToString(entry) + "\n"
	if *updateRows {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)

	_, text, _ := strings.Cut(string(want), "}\n")
	old, err := hex.DecodeString(strings.TrimSpace(text))
	require.NoError(t, err)
	back, err := Decode(old)
	require.NoError(t, err)
	require.Equal(t, row, back.(*UpdateFleet).Put[0])
}
