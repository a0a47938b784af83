package archive

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/internal/control/snapshot"
	"github.com/drover-project/drover/internal/control/store"
)

// Inspect verifies an archive and says what is in it; of one that is encrypted, its sums and what it says of itself. Errors: Invalid, and
// those of r.
func Inspect(r io.Reader) (out cluster.ArchiveContent, err error) {
	out.Archive, err = Read(r, func(m cluster.Archive, state io.Reader) error {
		if len(m.Key) > 0 {
			return nil
		}
		index, shares, err := snapshot.Survey(state)
		if err != nil {
			return fmt.Errorf("reading the archive's state: %w", err)
		}
		for _, s := range shares {
			out.Tables = append(out.Tables, cluster.ArchiveTable(s))
		}
		return sameIndex(m, index)
	})
	return out, err
}

// sameIndex checks the index of the state that an archive has.
func sameIndex(m cluster.Archive, index uint64) error {
	if index != m.Index {
		return drover.Errorf(drover.Invalid, "the archive's state is of index %d, its %s says %d", index, fileMeta, m.Index)
	}
	return nil
}

// decode verifies an archive and returns its state. Without keys it reads none that is encrypted. Errors: Invalid, Unavailable, and those
// of r.
func decode(ctx context.Context, r io.Reader, keys Keys) (cluster.Archive, *store.Snapshot, error) {
	var s *store.Snapshot
	m, err := Read(r, func(m cluster.Archive, state io.Reader) error {
		state, err := plain(ctx, m, state, keys)
		if err != nil {
			return err
		}
		txn, err := snapshot.Read(state, store.New(), nil)
		if err != nil {
			return fmt.Errorf("reading the archive's state: %w", err)
		}
		s = txn.Commit()
		return sameIndex(m, s.Index())
	})
	return m, s, err
}

// State verifies an archive and writes its state as JSON: an object with a list for each table. Secrets are left out, and what
// users may have put secrets into: environments, templates, payloads and sources of jobs. Errors: Invalid; those of r and w.
func State(ctx context.Context, r io.Reader, w io.Writer) error {
	m, s, err := decode(ctx, r, nil)
	if err != nil {
		return err
	}
	out := &dump{w: bufio.NewWriter(w)}
	out.text("{\n\"Archive\": ")
	out.value(m)
	table(out, "Namespaces", s.Namespaces())
	table(out, "NodePools", s.NodePools())
	table(out, "Nodes", s.Nodes(""))
	table(out, "Jobs", s.Jobs("*", ""))
	table(out, "Evaluations", s.Evaluations("*", ""))
	table(out, "Deployments", s.Deployments("*", ""))
	table(out, "Allocations", withoutJobs(s.Allocations("*", "")))
	table(out, "FleetPools", s.FleetPools())
	table(out, "FleetMachines", s.FleetInstances(""))
	out.text(",\n\"SchedulerConfig\": ")
	out.value(s.SchedulerConfig())
	out.text(",\n\"Cluster\": ")
	out.value(s.Cluster())
	out.text("\n}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// withoutJobs leaves the job out of allocations: it stands under Jobs, or was replaced.
func withoutJobs(list iter.Seq[*drover.Allocation]) iter.Seq[*drover.Allocation] {
	return func(yield func(*drover.Allocation) bool) {
		for a := range list {
			bare := *a
			bare.Job = nil
			if !yield(&bare) {
				return
			}
		}
	}
}

// dump writes JSON up to the first error.
type dump struct {
	w   *bufio.Writer
	err error
}

func (d *dump) text(s string) {
	if d.err == nil {
		_, d.err = d.w.WriteString(s)
	}
}

// value writes a value without its secrets.
func (d *dump) value(v any) {
	if d.err != nil {
		return
	}
	plain, err := json.Marshal(v)
	if err != nil {
		d.err = err
		return
	}
	var tree any
	in := json.NewDecoder(strings.NewReader(string(plain)))
	in.UseNumber()
	if d.err = in.Decode(&tree); d.err != nil {
		return
	}
	var out []byte
	if out, d.err = json.Marshal(hide(tree, false)); d.err == nil {
		_, d.err = d.w.Write(out)
	}
}

// table writes a list, one row a line.
func table[T any](d *dump, name string, rows iter.Seq[*T]) {
	d.text(",\n\"" + name + "\": [")
	sep := "\n"
	for r := range rows {
		d.text(sep)
		d.value(r)
		sep = ",\n"
	}
	d.text("]")
}

const hidden = "(hidden)"

// hide replaces the texts of what may be secret; all says that the whole value is.
func hide(v any, all bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = hide(value, all || secret(key))
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i], all)
		}
	case string:
		if all && v != "" {
			return hidden
		}
	}
	return v
}

// secret reports whether what has the name may be a secret, or have one in it.
func secret(name string) bool {
	name = strings.ToLower(name)
	if name == "env" || name == "key" {
		return true
	}
	for _, part := range []string{"secret", "token", "password", "payload", "tmpl", "private", "credential", "userdata"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
