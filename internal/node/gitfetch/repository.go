package gitfetch

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover"
)

// repository is a folder with an empty, bare repository, and what git is told.
type repository struct {
	root   *os.Root
	rel    string // the folder, in root
	folder string // its path
	home   string // the folder as git sees it
	user   int    // who git is; 0: who the agent is
	git    string
	read   []string
	hosts  []string
	size   int64
	bridge string // this program's file; "" = no ssh
}

// attributes stand above those of the tree: it is taken as it is in the repository.
const attributes = "* -export-ignore -export-subst -text -filter -ident -working-tree-encoding -eol -crlf\n"

// prefix begins the names of repositories.
const prefix = "git-"

// removeFormer removes what an agent left that died.
func removeFormer(w Want) error {
	if err := w.Root.MkdirAll(w.Folder, 0o700); err != nil {
		return fmt.Errorf("making a folder for repositories: %w", err)
	}
	f, err := w.Root.Open(w.Folder)
	if err != nil {
		return fmt.Errorf("looking for former repositories: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("looking for former repositories: %w", err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			if err := w.Root.RemoveAll(filepath.Join(w.Folder, name)); err != nil {
				return fmt.Errorf("removing a former repository: %w", err)
			}
		}
	}
	return nil
}

// lay makes the repository's folder, which must not be there, and gives it to who git will be.
func (r *repository) lay(w Want, way *net.TCPAddr, secret string) error {
	if err := r.root.Mkdir(r.rel, 0o700); err != nil {
		return fmt.Errorf("making a folder for the repository: %w", err)
	}
	in, err := r.root.OpenRoot(r.rel)
	if err != nil {
		return fmt.Errorf("making a folder for the repository: %w", err)
	}
	defer in.Close()
	return r.fill(in, w, way, secret)
}

// fill makes what is in the folder. All of it is new: what stands there already was put there by somebody else.
func (r *repository) fill(in *os.Root, w Want, way *net.TCPAddr, secret string) error {
	address, login := withoutLogin(w.URL)
	files := map[string]string{
		"HEAD": "ref: refs/heads/none\n", "config": configuration(address, way, secret), "info/attributes": attributes,
		"passwd": fmt.Sprintf("git:x:%d:%d::%s:/bin/sh\n", r.user, r.user, r.home),
	}
	if login != "" {
		files[".git-credentials"] = login + "\n" // where git's own helper looks
	}
	if r.bridge != "" && r.user != 0 {
		files[bridge] = "" // it is mounted there
	}
	if w.Key != "" {
		files["key"] = strings.TrimRight(strings.ReplaceAll(w.Key, "\r\n", "\n"), "\n") + "\n"
		files["known_hosts"] = r.knownHosts()
	}
	names := []string{".", "objects", "refs", "info"}
	for _, name := range names[1:] {
		if err := in.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	for name, content := range files {
		mode := os.FileMode(0o600)
		if name == "passwd" {
			mode = 0o644
		}
		if err := writeNew(in, name, content, mode); err != nil {
			return err
		}
		names = append(names, name)
	}
	if r.user == 0 {
		if r.bridge != "" {
			return in.Symlink(r.bridge, bridge)
		}
		return nil
	}
	for _, name := range names {
		if err := in.Lchown(name, r.user, r.user); err != nil {
			return err
		}
	}
	return nil
}

func writeNew(in *os.Root, name, content string, mode os.FileMode) error {
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

// withoutLogin takes who asks out of an address by http: git gives addresses to its programs as arguments, which all users of the machine
// may read. login is an address with nothing but that, for git's store of them.
func withoutLogin(address string) (without, login string) {
	u, err := url.Parse(address)
	if err != nil || u.User == nil || u.Scheme != "http" && u.Scheme != "https" {
		return address, ""
	}
	password, _ := u.User.Password() // a token may stand alone, as the user
	who := url.URL{Scheme: u.Scheme, Host: u.Host, User: url.UserPassword(u.User.Username(), password)}
	u.User = nil
	return u.String(), who.String()
}

// configuration is the repository's, and all that git reads.
func configuration(address string, way *net.TCPAddr, secret string) string {
	proxy := ""
	if way != nil {
		proxy = fmt.Sprintf("socks5h://%s:%s@%s", tunnelUser, secret, way)
	}
	return "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\thooksPath = /dev/null\n\tpackedGitWindowSize = 32m\n" +
		"\tpackedGitLimit = 256m\n\tdeltaBaseCacheLimit = 64m\n\tbigFileThreshold = 32m\n\tfsyncObjectFiles = false\n\tfsync = none\n" +
		"[remote \"origin\"]\n\turl = " + quoted(address) + "\n" +
		"[http]\n\tproxy = " + quoted(proxy) + "\n\tfollowRedirects = true\n\tcookieFile =\n\tsaveCookies = false\n" +
		"[protocol]\n\tallow = never\n\tversion = 2\n[protocol \"https\"]\n\tallow = always\n[protocol \"http\"]\n\tallow = always\n" +
		"[protocol \"ssh\"]\n\tallow = always\n[fetch]\n\trecurseSubmodules = false\n\tunpackLimit = 1\n\twriteCommitGraph = false\n" +
		"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[pack]\n\tthreads = 1\n[index]\n\tthreads = 1\n[tar]\n\tumask = 0022\n" +
		"[advice]\n\tdetachedHead = false\n[credential]\n\thelper =\n\thelper = store\n[safe]\n\tdirectory = *\n"
}

// quoted writes a value so that git reads it as it is.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(s) + `"`
}

// knownHosts are the hosts that the agent's user and its machine know.
func (r *repository) knownHosts() string {
	var all strings.Builder
	for _, path := range r.hosts {
		if text, err := os.ReadFile(path); err == nil && filepath.IsAbs(path) {
			all.Write(text)
			all.WriteByte('\n')
		}
	}
	return all.String()
}

// environment is all that git gets.
func (r *repository) environment(way *net.TCPAddr, secret string) []string {
	// A shell runs it, and git starts it in the folder. No path is said: one has the task's name in it, which a job's author chooses.
	const ssh = "ssh -F none -i key -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=yes " +
		"-o UserKnownHostsFile=known_hosts -o GlobalKnownHostsFile=none -o ControlMaster=no -o ControlPath=none " +
		"-o ProxyCommand='./" + bridge + " %h %p'"
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + r.home, "TMPDIR=" + r.home, "LC_ALL=C", "GIT_DIR=" + r.home,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=",
		"SSH_ASKPASS=", "GIT_ALLOW_PROTOCOL=https:http:ssh", "GIT_PROTOCOL_FROM_USER=0", "GIT_OPTIONAL_LOCKS=0", "GIT_SSH_VARIANT=ssh",
		"GIT_SSH_COMMAND=" + ssh, "GOMAXPROCS=2",
	}
	if way != nil {
		env = append(env, wayVariable+"="+tunnelUser+":"+secret+"@"+way.String())
	}
	return env
}

// tunnelUser is who git is to the tunnel.
const tunnelUser = "git"

// checkURL refuses what git would take for something else than an address of a server, and what a shell would take for more than a name.
func checkURL(address string) error {
	switch {
	case address == "" || strings.HasPrefix(address, "-") || strings.ContainsAny(address, "\n\r\x00"):
		return drover.Errorf(drover.Invalid, "repository %q: is no address", address)
	case strings.HasPrefix(address, "https://"), strings.HasPrefix(address, "http://"):
		return nil
	case strings.HasPrefix(address, "ssh://"):
		u, err := url.Parse(address)
		if err != nil {
			// Not all that it says: the address may have a password.
			return drover.Errorf(drover.Invalid, "the repository's address is none: %w", errors.Unwrap(err))
		}
		if _, password := u.User.Password(); password {
			return drover.Errorf(drover.Invalid,
				"the repository's address has a password, which ssh does not take from there: give an sshkey")
		}
		return checkLogin(u.User.Username(), u.Host)
	case strings.Contains(address, "://") || strings.Contains(address, "::"):
		scheme, _, _ := strings.Cut(address, ":")
		return drover.Errorf(drover.NotImplemented, "repositories are fetched by https, http and ssh, not by %q", scheme)
	case strings.HasPrefix(address, "/") || strings.HasPrefix(address, ".") || !strings.Contains(address, ":"):
		return drover.Errorf(drover.Invalid, "repository %q: want https://, http://, ssh:// or user@host:path", address)
	}
	at, _, _ := strings.Cut(address, ":")
	if i := strings.LastIndex(address, "]:"); i >= 0 { // an address of IPv6
		at = address[:i+1]
	}
	return checkLogin("", at) // user@host
}

// checkLogin refuses names of users and hosts with other characters than such names have: ssh gives the host to a shell.
func checkLogin(user, host string) error {
	for _, name := range []string{user, host} {
		if strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._@:[]", r)
		}) {
			return drover.Errorf(drover.Invalid, "repository: %q is no name of a user or a server", name)
		}
	}
	return nil
}

// checkRef refuses what is no name of a branch, a tag or a commit.
func checkRef(ref string) error {
	if ref == "" || strings.HasPrefix(ref, "-") || strings.HasPrefix(ref, "+") || strings.Contains(ref, "..") ||
		strings.Contains(ref, "@{") || strings.ContainsAny(ref, " ~^:?*[\\\x7f") ||
		strings.ContainsFunc(ref, func(r rune) bool { return r < ' ' }) {
		return drover.Errorf(drover.Invalid, "ref %q: want the name of a branch or tag, or a commit", ref)
	}
	return nil
}
