package allocdir

import (
	"errors"
	"os"
	"path/filepath"
)

// carried are the folders whose content goes to an allocation's replacement: alloc/data and the tasks' local folders.
func carried(tasks []string) []string {
	parts := []string{filepath.Join("alloc", "data")}
	for _, t := range tasks {
		parts = append(parts, filepath.Join(t, "local"))
	}
	return parts
}

// TakeOver moves alloc/data and the tasks' local folders from another allocation of this node, whose tasks have ended.
// It goes by the folders' names alone and never looks into them.
func (d Dir) TakeOver(from Dir, tasks []string) error { return d.take(from.Path(), tasks) }

// take moves the folders from below another folder.
func (d Dir) take(from string, tasks []string) error {
	var errs []error
	for _, p := range carried(tasks) {
		source, target := filepath.Join(from, p), filepath.Join(d.Path(), p)
		if info, err := os.Lstat(source); err != nil || !info.IsDir() {
			continue
		}
		if err := os.Remove(target); err != nil { // it is new and empty
			errs = append(errs, err)
			continue
		}
		errs = append(errs, os.Rename(source, target))
	}
	return errors.Join(errs...)
}
