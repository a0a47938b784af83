package diskuse

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Deleted counts what processes hold open on a file system though no name leads to it any more. What we may not look
// at is not counted.
func Deleted(dir string, pids []int) Usage {
	var top unix.Stat_t
	if unix.Stat(dir, &top) != nil {
		return Usage{}
	}
	var u Usage
	seen := map[uint64]bool{}
	for _, pid := range pids {
		for _, kind := range []string{"fd", "map_files"} {
			folder := filepath.Join("/proc", strconv.Itoa(pid), kind)
			entries, err := os.ReadDir(folder)
			if err != nil {
				continue
			}
			for _, e := range entries {
				var st unix.Stat_t
				if unix.Stat(filepath.Join(folder, e.Name()), &st) != nil || st.Dev != top.Dev || st.Nlink > 0 || seen[st.Ino] {
					continue
				}
				seen[st.Ino] = true
				u.Files++
				u.Bytes += st.Blocks * blockSize
			}
		}
	}
	return u
}
