package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// notice stands at the top of each page.
const notice = "<!-- Written by internal/docgen from the code. Do not edit: change the code, then run `make docs`. -->\n\n"

// pages returns the text of each generated page by its path below root, which is the root of a checkout. Errors: a source
// file that cannot be read or parsed.
func pages(root string) (map[string]string, error) {
	out := map[string]string{"docs/reference/nomad.md": notice + nomadCompatibility()}
	for path, write := range map[string]func(root string) (string, error){
		"configuration.md": configuration,
		"cli.md":           commandLine,
		"http-api.md":      nativeAPI,
		"errors.md":        errorCodes,
		"rights.md":        neededRights,
	} {
		text, err := write(root)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", path, err)
		}
		out[filepath.Join("docs/reference", path)] = notice + text
	}
	return out, nil
}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// run writes all pages below root. The package's test compares them with what is committed.
func run(root string) error {
	all, err := pages(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "docs/reference"), 0o755); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if err := os.WriteFile(filepath.Join(root, path), []byte(all[path]), 0o644); err != nil {
			return err
		}
	}
	return nil
}
