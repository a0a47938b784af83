package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/flock"
)

// Announcement tells other agents of the same user on this machine a server's join token. It is a file that only that user
// can read, in a folder that only that user can enter, named for where nodes dial. Its server holds a lock on it: the file of
// a server that was killed is not read any more, as somebody else may listen there now.
type Announcement struct{ files []announced }

// announced is a file, with the description that has the lock.
type announced struct {
	path string
	f    *os.File
}

// Announce writes the token where AnnouncedToken looks. address is the host:port at which nodes dial. One folder that can be
// used is enough. Errors: those of all folders.
func Announce(address, token string) (*Announcement, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	a, why := &Announcement{}, []error(nil)
	name := announcementName(at.Addr(), at.Port())
	for _, folder := range announcementFolders() {
		sweepAnnouncements(folder)
		f, err := announceIn(folder, name, token)
		if err != nil {
			why = append(why, err)
			continue
		}
		a.files = append(a.files, announced{filepath.Join(folder, name), f})
	}
	if len(a.files) == 0 {
		return a, errors.Join(why...)
	}
	return a, nil
}

// Close removes the announcement. A nil announcement has nothing to remove.
func (a *Announcement) Close() {
	if a == nil {
		return
	}
	for _, file := range a.files {
		_ = os.Remove(file.path)
		_ = flock.Close(file.f)
		_ = os.Remove(filepath.Dir(file.path)) // unless there are others
	}
}

// announceIn makes the file under another name, locks it, and gives it its name.
func announceIn(folder, name, token string) (*os.File, error) {
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := private(folder, true); err != nil {
		return nil, err
	}
	path := filepath.Join(folder, name)
	f, err := os.OpenFile(path+"."+rand.Text(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err = flock.Exclusive(f); err == nil {
		_, err = f.WriteString(token + "\n")
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// AnnouncedToken returns the token of the server of the same user on this machine that listens at the address; "" if there is
// none.
func AnnouncedToken(ctx context.Context, server string) string {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return ""
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return ""
	}
	for _, addr := range ownAddresses(ctx, host) {
		wildcards := []netip.Addr{addr, netip.IPv6Unspecified(), netip.IPv4Unspecified()}
		for _, folder := range announcementFolders() {
			for _, at := range wildcards {
				if token := readAnnouncement(folder, announcementName(at, uint16(n))); token != "" { // a port
					return token
				}
			}
		}
	}
	return ""
}

// ownAddresses are the host's addresses if they are this machine's. A token is for nobody else.
func ownAddresses(ctx context.Context, host string) (own []netip.Addr) {
	found := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		found = append(found, addr)
	} else {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a name server may not answer
		defer cancel()
		found, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	interfaces, _ := net.InterfaceAddrs()
	for _, addr := range found {
		addr = addr.Unmap()
		ours := addr.IsLoopback() || slices.ContainsFunc(interfaces, func(a net.Addr) bool {
			p, err := netip.ParsePrefix(a.String())
			return err == nil && p.Addr().Unmap() == addr
		})
		if !ours {
			return nil
		}
		own = append(own, addr)
	}
	return own
}

func readAnnouncement(folder, name string) string {
	if private(folder, true) != nil {
		return ""
	}
	path := filepath.Join(folder, name)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if flock.TryShared(f) || private(path, false) != nil {
		return "" // its server is gone
	}
	token, err := ReadToken(path)
	if err != nil {
		return ""
	}
	return token
}

// sweepAnnouncements removes those of servers that were killed.
func sweepAnnouncements(folder string) {
	if private(folder, true) != nil {
		return
	}
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		f, err := os.Open(filepath.Join(folder, e.Name()))
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Size() > 0 && flock.TryShared(f) {
			_ = os.Remove(f.Name())
		}
		_ = f.Close()
	}
}

// private refuses a file or folder that is not this user's alone.
func private(path string, folder bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	kind := uint32(unix.S_IFREG)
	if folder {
		kind = unix.S_IFDIR
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&unix.S_IFMT != kind || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s (owner %d, mode %o) is not only ours: %w", path, st.Uid, st.Mode&0o7777, os.ErrPermission)
	}
	return nil
}

// announcementFolders are where this user's agents look, whatever session they were started from.
func announcementFolders() (folders []string) {
	if os.Geteuid() == 0 {
		folders = append(folders, "/run/drover-join")
	} else if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		folders = append(folders, filepath.Join(dir, "drover-join"))
	}
	if dir, err := os.UserCacheDir(); err == nil {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			folders = append(folders, filepath.Join(dir, "drover-join"))
		}
	}
	return folders
}

// announcementName names an address of this start of this machine and this network namespace: home folders may be shared by
// machines, and each namespace has a loopback of its own.
func announcementName(addr netip.Addr, port uint16) string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	namespace, _ := os.Readlink("/proc/self/ns/net")
	where := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'f' {
			return r
		}
		return -1
	}, string(boot)+namespace)
	return fmt.Sprintf("%s-%s-%d", where, addr.Unmap(), port)
}
