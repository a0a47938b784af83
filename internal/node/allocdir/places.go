package allocdir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/id"
	"github.com/drover-project/drover/internal/rotation"
)

// At returns the root with the allocations' folders at another place than <data>/alloc. Those that are at one of the former places
// stay there until they are removed: what runs has its folder open. Call it before SecretsInMemory.
func (r Root) At(path string, former []string) Root {
	r.path, r.nest, r.former = path, &nest{parent: path}, nil
	for _, p := range former {
		if p != path {
			r.former = append(r.former, Root{data: r.data, path: p, nest: &nest{parent: p}})
		}
	}
	return r
}

// everywhere are the root and those of the former places.
func (r Root) everywhere() []Root { return append([]Root{r}, r.former...) }

// home is the root that the allocation's folder is in, or would be made in.
func (r Root) home(allocID string) Root {
	for _, f := range r.former {
		if d := (Dir{f, allocID}); d.Exists() && !(Dir{r, allocID}).Exists() {
			f.secrets = r.secrets
			return f
		}
	}
	return r
}

// owner is the file of an allocations' folder that is not in the data folder: it names that, as no two agents may have one.
const owner = ".owner"

// own marks the folder as that of this data folder. Errors: Conflict where another agent has it.
func (r Root) own() error {
	if r.path == filepath.Join(r.data, folderName) {
		return nil
	}
	file := filepath.Join(r.path, owner)
	text, err := os.ReadFile(file)
	switch said := strings.TrimSpace(string(text)); {
	case err == nil && said != r.data:
		return drover.Errorf(drover.Conflict, "client.alloc_dir: %s is that of the agent with the data_dir %s; choose another, or remove %s "+
			"if that agent is gone", r.path, said, file)
	case err == nil:
		return nil
	}
	return rotation.WriteFile(file, []byte(r.data+"\n"))
}

// Places reads the file that remembers where allocations' folders are, adds the place where they are now, and returns the former
// ones that have some still. Errors: those of the disk.
func Places(file, data, now string) (former []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading where allocations' folders are: %w", err)
	}
	for _, path := range append(strings.Split(string(text), "\n"), filepath.Join(data, folderName)) {
		if path == "" || path == now || slices.Contains(former, path) {
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("looking for allocations where they were before: %w", err)
		}
		if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return id.Valid(e.Name()) }) {
			former = append(former, path)
		}
	}
	if len(former) == 0 && now == filepath.Join(data, folderName) && text == nil {
		return nil, nil // as nearly always
	}
	return former, rotation.WriteFile(file, []byte(strings.Join(append([]string{now}, former...), "\n")+"\n"))
}
