package shapetest

import (
	"bytes"
	"encoding"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Of returns a line for each root, and one for each field that is written of it and of all that it leads to, sorted. A root's name
// says its number.
func Of(roots map[string]any) []string {
	w := &walker{seen: map[reflect.Type]bool{}}
	for name, value := range roots {
		t := reflect.TypeOf(value)
		w.lines = append(w.lines, fmt.Sprintf("%s = %s", name, typeName(t)))
		w.walk(t)
	}
	slices.Sort(w.lines)
	return w.lines
}

type walker struct {
	seen  map[reflect.Type]bool
	lines []string
}

func (w *walker) walk(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		w.walk(t.Elem())
	case reflect.Map:
		w.walk(t.Key())
		w.walk(t.Elem())
	case reflect.Struct:
		if !w.seen[t] && !opaque(t) {
			w.seen[t] = true
			w.fields(t)
		}
	}
}

// fields notes the fields that the codec writes: the exported ones, under their names or those of their tags.
func (w *walker) fields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("codec"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		w.lines = append(w.lines, fmt.Sprintf("%s.%s %s", called(t), name, typeName(f.Type)))
		w.walk(f.Type)
	}
}

// opaque reports whether a type says itself how it is written.
func opaque(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.BinaryMarshaler]())
}

// former are the names under which shapes know types that were moved out of the root package: a type's name is not written.
var former = map[string]string{
	"network.Resource": "drover.NetworkResource", "network.Status": "drover.AllocNetworkStatus",
	"workload.Identity": "drover.WorkloadIdentity", "service.Registration": "drover.ServiceRegistration",
}

// movedOut are the packages that have the rest of them, under the names that they had.
var movedOut = []string{"constraint", "network", "service", "tenancy", "volume"}

// called is the name under which shapes know a type.
func called(t reflect.Type) string {
	if name, moved := former[t.String()]; moved {
		return name
	}
	if from, name, ok := strings.Cut(t.String(), "."); ok && slices.Contains(movedOut, from) {
		return "drover." + name
	}
	return t.String()
}

// typeName is the type with what stands behind its names.
func typeName(t reflect.Type) string {
	switch {
	case t.Name() != "" && (t.Kind() == reflect.Struct || t.Kind() == reflect.Interface || t.PkgPath() == ""):
		return called(t)
	case t.Name() != "":
		return fmt.Sprintf("%s(%s)", called(t), t.Kind())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem())
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), typeName(t.Elem()))
	case reflect.Map:
		return fmt.Sprintf("map[%s]%s", typeName(t.Key()), typeName(t.Elem()))
	}
	return t.String()
}

// Shapes are what programs of each version write.
type Shapes struct {
	Folder string // of the goldens, N.txt for version N
	Newest int    // the version that this program writes at most
	Update bool   // write the golden of the newest version; those of older ones never change
	// Gates says of each field that a version added to what an older one has what keeps it from being written before.
	Gates map[string]string
}

const advice = `What is written to the log and to snapshots has changed:
%s
A program drops what it does not know, and then its state is another one. So this needs a cluster version of its own:
- If no release has version %[2]d yet, run the test again with -update.
- Else begin version %[3]d: raise command.Newest, note its first kind in begins, and run the test with -update. %[2]d.txt stays.
- A new field of what an older version has is written only where the cluster's version allows it: say in the test's gates how.
CONTRIBUTING.md has the list ("A command of the log").`

// Check compares the lines with the goldens: they are those of the newest version, and each version has all of the one before.
func (s Shapes) Check(t testing.TB, lines []string) {
	t.Helper()
	text := strings.Join(lines, "\n") + "\n"
	if s.Update {
		s.write(t, s.name(s.Newest, "txt"), []byte(text))
	}
	golden := s.read(t, s.Newest)
	if changes := diff(golden, lines); len(changes) > 0 {
		t.Fatalf(advice, strings.Join(changes, "\n"), s.Newest, s.Newest+1)
	}
	for version := 2; version <= s.Newest; version++ {
		for _, change := range diff(s.read(t, version-1), s.read(t, version)) {
			if problem := s.problem(t, version, change); problem != "" {
				t.Errorf("version %d: %s: %s", version, change, problem)
			}
		}
	}
}

// problem says what is wrong about a change from the version before; "" if nothing is.
func (s Shapes) problem(t testing.TB, version int, change string) string {
	line, added := strings.CutPrefix(change, "+ ")
	if !added {
		return "a program reads what older ones wrote: nothing is taken away, and no type changes"
	}
	field, _, _ := strings.Cut(line, " ")
	owner := field[:max(0, strings.LastIndex(field, "."))]
	old := slices.ContainsFunc(s.read(t, version-1), func(l string) bool { return owner != "" && strings.HasPrefix(l, owner+".") })
	if old && s.Gates[field] == "" {
		return "what older servers have got a field: say in gates what keeps it from being written before all servers know it"
	}
	return ""
}

// diff returns what was taken away (-) and what was added (+).
func diff(before, after []string) (out []string) {
	for _, l := range before {
		if !slices.Contains(after, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range after {
		if !slices.Contains(before, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}

// Bytes compares what is encoded by hand, by name, with the goldens: the newest version writes these bytes, and again reads and
// writes all bytes that older versions wrote.
func (s Shapes) Bytes(t testing.TB, encoded map[string][]byte, again func(name string, data []byte) ([]byte, error)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(encoded)) {
		if s.Update {
			s.write(t, s.name(s.Newest, name), encoded[name])
		}
		for version := 1; version <= s.Newest; version++ {
			golden, err := os.ReadFile(s.name(version, name))
			if err != nil {
				t.Fatal(err)
			}
			if version == s.Newest && !bytes.Equal(golden, encoded[name]) {
				t.Fatalf(advice, "the bytes of "+name, s.Newest, s.Newest+1)
			}
			if got, err := again(name, golden); err != nil || !bytes.Equal(golden, got) {
				t.Errorf("version %d: %s reads and writes otherwise than that version did: numbers and types of fields never change (%v)",
					version, name, err)
			}
		}
	}
}

func (s Shapes) name(version int, kind string) string {
	return filepath.Join(s.Folder, fmt.Sprintf("%d.%s", version, kind))
}

func (s Shapes) read(t testing.TB, version int) []string {
	t.Helper()
	data, err := os.ReadFile(s.name(version, "txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (s Shapes) write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(s.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
