package account

import (
	"sync"
	"syscall"
)

// maxAccountFile is how much of a file is read: the guest decides what is in it, and we keep it in memory.
const maxAccountFile = 1 << 20

// guestFile is a small file that the guest may have replaced by anything, as it was read last.
type guestFile struct {
	path string

	mu   sync.Mutex
	seen syscall.Stat_t // guarded by mu
	text string         // guarded by mu
}

// read returns the content, "" of what is no regular file. It is read again only when the kernel says that it changed:
// every start asks.
func (g *guestFile) read() string {
	var st syscall.Stat_t
	if syscall.Stat(g.path, &st) != nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if st.Ino != g.seen.Ino || st.Dev != g.seen.Dev || st.Size != g.seen.Size || st.Mtim != g.seen.Mtim || st.Ctim != g.seen.Ctim {
		g.load()
	}
	return g.text
}

// load reads it anew. Caller holds mu.
func (g *guestFile) load() {
	g.text, g.seen = "", syscall.Stat_t{}
	fd, err := syscall.Open(g.path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = syscall.Close(fd) }()
	var st syscall.Stat_t
	if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return
	}
	buf := make([]byte, min(max(st.Size, 0), maxAccountFile))
	n, err := syscall.Read(fd, buf)
	for err == syscall.EINTR {
		n, err = syscall.Read(fd, buf)
	}
	g.text, g.seen = string(buf[:max(n, 0)]), st
}
