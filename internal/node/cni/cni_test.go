package cni

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/clock"
	"github.com/drover-project/drover/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a plugin that notes how it is called, in a file beside it, and answers with one address. The network's key "do" makes it
// do something else.
const recorder = `#!/bin/sh
config=$(cat)
log=$(dirname "$0")/../log
[ -n "$CNI_COMMAND" ] || { echo "CNI ${0##*/} plugin v1.2.3" >&2; exit 0; }
echo "$CNI_COMMAND ${0##*/} $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME [$CNI_ARGS]" >> "$log"
echo "$config" > "$log.$CNI_COMMAND.${0##*/}"
env > "$log.env"
case "$CNI_COMMAND:$config" in
ADD:*'"do":"fail"'*)
	printf '{"code": 11, "msg": "no \\u001b[31mroom", "details": "on\\nthis node"}'; exit 1;;
ADD:*'"do":"hang"'*|DEL:*'"do":"stuck"'*)
	setsid sleep 1000 & echo $! > "$log.child"; exec sleep 1000;;
ADD:*'"do":"flood"'*)
	yes | head -c 3000000;;
ADD:*)
	[ -f "$log.answer" ] && cat "$log.answer" && exit 0
	echo '{"cniVersion": "0.4.0", "interfaces": [{"name": "host0"}, {"name": "eth0", "sandbox": "'"$CNI_NETNS"'"}],
	"ips": [{"version": "4", "address": "192.0.2.1/24", "interface": 0}, {"version": "4", "address": "192.0.2.7/24", "interface": 1},
	{"version": "6", "address": "2001:db8::7/64", "interface": 1}],
	"dns": {"nameservers": ["192.0.2.53"], "domain": "example.com", "options": ["ndots:2"]}}';;
esac
`

// bench is a machine's folders.
type bench struct {
	*Networks
	t   *testing.T
	dir string
}

// newBench has plugins of these names and no network.
func newBench(t *testing.T, plugins ...string) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "cni") // a test's own folder may lie in one that others can change
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	for _, sub := range []string{"bin", "net"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	for _, p := range plugins {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", p), []byte(recorder), 0o755))
	}
	return &bench{t: t, dir: dir, Networks: New(Config{
		Path: []string{filepath.Join(dir, "bin")}, ConfigDir: filepath.Join(dir, "net"), CacheDir: filepath.Join(dir, "cache"),
		Clock: clock.Wall{}, Log: slog.New(slog.DiscardHandler),
	})}
}

func (b *bench) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	require.NoError(b.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func (b *bench) log() string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "log"))
	require.NoError(b.t, err)
	return string(data)
}

// list is a network of plugins in order, each with a key "do".
func list(name string, plugins ...string) string {
	var texts []string
	for _, p := range plugins {
		kind, do, _ := strings.Cut(p, ":")
		texts = append(texts, fmt.Sprintf(`{"type": %q, "do":%q, "capabilities": {"portMappings": %v}}`, kind, do, kind == "ports"))
	}
	return fmt.Sprintf(`{"cniVersion": "0.4.0", "name": %q, "plugins": [%s]}`, name, strings.Join(texts, ","))
}

func anAlloc() *drover.Allocation {
	return &drover.Allocation{
		ID: "a1", Namespace: "default", JobID: "shop;x", TaskGroup: "web", Job: &drover.Job{Region: "global"},
	}
}

func TestPluginsGetWhatNomadGivesThem(t *testing.T) {
	t.Parallel()
	b := newBench(t, "first", "ports")
	b.file("net/10.conflist", list("mine", "first", "ports"))
	ports := []network.PortMapping{{Label: "http", Value: 20000, To: 80, HostIP: "192.0.2.9"}, {Label: "same", Value: 20001}}
	a, err := b.Plan("mine", anAlloc(), map[string]string{"COLOUR": "blue"}, ports)
	require.NoError(t, err)
	require.False(t, a.Unmapped())
	require.NoError(t, b.Attach(t.Context(), a, "/run/ns"))
	require.Equal(t, &network.Status{
		InterfaceName: "eth0", Address: "192.0.2.7", AddressIPv6: "2001:db8::7",
		DNS: &network.DNSConfig{Servers: []string{"192.0.2.53"}, Searches: []string{"example.com"}, Options: []string{"ndots:2"}},
	}, a.Status)

	// The file's later contents do not matter to what is attached.
	b.file("net/10.conflist", list("mine", "other"))
	require.NoError(t, b.Detach(t.Context(), a, "/run/ns"))
	require.NoError(t, b.Detach(t.Context(), a, ""))
	require.NoError(t, b.Close())
	require.NoDirExists(t, filepath.Join(b.dir, "cache"))
	const args = "[IgnoreUnknown=true;NOMAD_REGION=global;NOMAD_NAMESPACE=default;NOMAD_GROUP_NAME=web;NOMAD_ALLOC_ID=a1;COLOUR=blue]\n"
	require.Equal(t, "ADD first a1 /run/ns eth0 "+args+"ADD ports a1 /run/ns eth0 "+args+
		"DEL ports a1 /run/ns eth0 "+args+"DEL first a1 /run/ns eth0 "+args+"DEL ports a1  eth0 "+args+"DEL first a1  eth0 "+args, b.log())
	for _, command := range []string{"ADD", "DEL"} {
		told, err := os.ReadFile(filepath.Join(b.dir, "log."+command+".ports"))
		require.NoError(t, err)
		for _, want := range []string{
			`{"hostPort":20000,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.9"}`,
			`{"hostPort":20000,"containerPort":80,"protocol":"udp","hostIP":"192.0.2.9"}`,
			`{"hostPort":20001,"containerPort":20001,"protocol":"tcp"}`,
		} {
			require.Contains(t, string(told), want)
		}
		told, err = os.ReadFile(filepath.Join(b.dir, "log."+command+".first"))
		require.NoError(t, err)
		require.NotContains(t, string(told), "hostPort", "it does not have the capability")
	}
}

func TestPluginsSeeNothingOfTheAgentsEnvironment(t *testing.T) {
	t.Setenv("DROVER_TOKEN", "secret")
	t.Setenv("CNI_OLD", "x")
	b := newBench(t, "p")
	b.file("net/a.conf", `{"cniVersion": "0.4.0", "name": "mine", "type": "p"}`)
	a, err := b.Plan("mine", anAlloc(), nil, nil)
	require.NoError(t, err)
	require.NoError(t, b.Attach(t.Context(), a, "/run/ns"))
	env, err := os.ReadFile(filepath.Join(b.dir, "log.env"))
	require.NoError(t, err)
	require.NotContains(t, string(env), "secret")
	require.Contains(t, string(env), "CNI_COMMAND=ADD")
}

func TestAPluginThatFailsSaysWhyInOneLine(t *testing.T) {
	t.Parallel()
	b := newBench(t, "one", "two")
	b.file("net/a.conflist", list("mine", "one", "two:fail"))
	a, err := b.Plan("mine", anAlloc(), nil, nil)
	require.NoError(t, err)
	err = b.Attach(t.Context(), a, "/run/ns")
	require.EqualError(t, err, `CNI network "mine": plugin type="two" failed (add): no [31mroom; on this node`)
	require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	require.Nil(t, a.Status)
	require.NoError(t, b.Detach(t.Context(), a, "/run/ns"))
	require.Equal(t, 4, strings.Count(b.log(), "\n"), "both are undone")

	b.file("net/a.conflist", list("mine", "one:flood"))
	a, err = b.Plan("mine", anAlloc(), nil, nil)
	require.NoError(t, err)
	require.ErrorContains(t, b.Attach(t.Context(), a, "/run/ns"), "it printed more than 1048576 bytes")
}

func TestAPluginThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t, "slow")
	b.file("net/a.conflist", list("mine", "slow:hang"))
	a, err := b.Plan("mine", anAlloc(), nil, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.EqualError(t, b.Attach(ctx, a, "/run/ns"),
		`CNI network "mine": plugin type="slow" failed (add): it did not end in time and was ended`)
	// Its child, which left its group and holds its output open, is nobody's. It must not keep us.
	data, err := os.ReadFile(filepath.Join(b.dir, "log.child"))
	require.NoError(t, err)
	var child int
	_, err = fmt.Sscan(string(data), &child)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(child, syscall.SIGKILL))
}

func TestWhatPluginsAnswerIsChecked(t *testing.T) {
	t.Parallel()
	const inside = `"ips": [{"address": "192.0.2.1/24", "interface": 0}]}`
	for answer, want := range map[string]string{
		``:                       "its result is no JSON of CNI: unexpected end of JSON input",
		`nonsense`:               "invalid character",
		`null`:                   "is null, or has a null in it",
		`{}`:                     "the plugins gave no address in the namespace",
		`{"ips": [null]}`:        "is null, or has a null in it",
		`{"interfaces": [null]}`: "is null, or has a null in it",
		`{"routes": [null]}`:     "is null, or has a null in it",
		`{"cniVersion": "7"}`:    `"7"`,
		`{"cniVersion": 1}`:      "",
		`{"interfaces": [{"name": "e\u001b[2J", "sandbox": "x"}], ` + inside:                        "which is no name of one",
		`{"interfaces": [{"name": "../../x", "sandbox": "x"}], ` + inside:                           "which is no name of one",
		`{"interfaces": [{"name": "eth0"}], ` + inside:                                              "gave no address in the namespace",
		`{"interfaces": [{"name": "eth0"}], "ips": [{"address": "192.0.2.1/24", "interface": -7}]}`: "gave no address in the namespace",
		`{"ips": [{"address": "192.0.2.1/24"}], "dns": {"nameservers": ["1.1.1.1\nsearch evil"]}}`:  "which is no word",
		`{"ips": [{"address": "192.0.2.1/24"}], "dns": {"nameservers": ["dns.example"]}}`:           `name server "dns.example" is no address`,
	} {
		b := newBench(t, "p")
		b.file("net/a.conf", `{"cniVersion": "0.4.0", "name": "mine", "type": "p"}`)
		b.file("log.answer", answer)
		a, err := b.Plan("mine", anAlloc(), nil, nil)
		require.NoError(t, err)
		err = b.Attach(t.Context(), a, "/run/ns")
		require.ErrorContains(t, err, want, answer)
		require.NotContains(t, err.Error(), "\n")
		require.Nil(t, a.Status)
	}
}

func TestOldPluginsNameNoInterface(t *testing.T) {
	t.Parallel()
	b := newBench(t, "p")
	b.file("net/a.conf", `{"cniVersion": "0.2.0", "name": "mine", "type": "p"}`)
	b.file("log.answer", `{"cniVersion": "0.2.0", "ip4": {"ip": "192.0.2.8/24"}}`)
	a, err := b.Plan("mine", anAlloc(), nil, nil)
	require.NoError(t, err)
	require.NoError(t, b.Attach(t.Context(), a, "/run/ns"))
	require.Equal(t, &network.Status{InterfaceName: "eth0", Address: "192.0.2.8"}, a.Status)
}

func TestArgumentsOfAJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, "p")
	b.file("net/a.conf", `{"cniVersion": "0.4.0", "name": "mine", "type": "p"}`)
	for _, c := range []struct{ key, value, want string }{
		{"X", "a;NOMAD_NAMESPACE=other", "must have no semicolon"},
		{"X", "a\nb", "no control character"},
		{"NOMAD_NAMESPACE", "other", "is given by the node"},
		{"nomad_alloc_id", "other", "is given by the node"},
		{"A=B", "x", "must be letters"},
		{"", "x", "must be letters"},
	} {
		_, err := b.Plan("mine", anAlloc(), map[string]string{c.key: c.value}, nil)
		require.ErrorContains(t, err, c.want)
		require.Equal(t, drover.Invalid, drover.CodeOf(err))
	}
	a, err := b.Plan("mine", anAlloc(), map[string]string{"IgnoreUnknown": "false"}, []network.PortMapping{{Label: "p", Value: 1}})
	require.NoError(t, err)
	require.Contains(t, a.Args, [2]string{"IgnoreUnknown", "false"})
	require.NotContains(t, a.Args, [2]string{"IgnoreUnknown", "true"})
	require.True(t, a.Unmapped())
}

func TestWhatIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, "bridge", "silent", "open", "closed")
	b.file("net/10-good.conflist", list("good", "bridge"))
	b.file("net/11-again.conflist", list("good", "nothing"))
	b.file("net/12-broken.conf", `{`)
	b.file("net/13-odd.conf", `{"name": "a/../b", "type": "bridge"}`)
	b.file("net/14-lacks.conf", `{"name": "lacks", "type": "bridge", "ipam": {"type": "host-local"}}`)
	b.file("net/15-new.conf", `{"cniVersion": "9.0.0", "name": "new", "type": "bridge"}`)
	b.file("net/16-open.conf", `{"name": "exposed", "type": "open"}`)
	b.file("net/17-path.conf", `{"name": "path", "type": "../bin/bridge"}`)
	b.file("net/18-notes.txt", `{"name": "notes", "type": "bridge"}`)
	written := b.file("net/19-written.conf", `{"name": "written", "type": "bridge"}`)
	require.NoError(t, os.Chmod(written, 0o666))
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "bin", "open"), 0o777))
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "bin", "closed"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "bin", "silent"), []byte("#!/bin/sh\nexit 0\n"), 0o755))
	found := b.Look(t.Context())
	require.Equal(t, map[string]string{"bridge": "1.2.3"}, found.Plugins)
	require.Contains(t, found.Networks, "good")
	require.Empty(t, found.Networks["good"])
	for name, want := range map[string]string{
		"lacks": `plugin "host-local" is not in `, "new": `cniVersion "9.0.0" is not known`, "exposed": "can be written by other users",
		"path": `plugin "../bin/bridge" is not in`, "written": "can be written by other users",
	} {
		require.Contains(t, found.Networks[name], want, name)
		_, err := b.Plan(name, anAlloc(), nil, nil)
		require.ErrorContains(t, err, want)
		require.Equal(t, drover.Unavailable, drover.CodeOf(err))
	}
	require.Len(t, found.Networks, 6)
	_, err := b.Plan("elsewhere", anAlloc(), nil, nil)
	require.ErrorContains(t, err, `there is no CNI network "elsewhere" in `)

	// It is looked again when something has changed, and only then.
	again := b.Look(t.Context())
	require.Equal(t, found, again)
	require.NoError(t, os.Chmod(written, 0o644))
	require.Empty(t, b.Look(t.Context()).Networks["written"])
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "net"), 0o777))
	b.file("net/20-more.conf", `{"name": "more", "type": "bridge"}`)
	require.Empty(t, b.Look(t.Context()).Networks, "the folder is open to others")
}

func TestAPluginThatBecameOpenToOthersIsNotRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, "p")
	b.file("net/a.conf", `{"cniVersion": "0.4.0", "name": "mine", "type": "p"}`)
	a, err := b.Plan("mine", anAlloc(), nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "bin", "p"), 0o777))
	require.ErrorContains(t, b.Attach(t.Context(), a, "/run/ns"), "can be written by other users")
	require.NoFileExists(t, filepath.Join(b.dir, "log"))
}

func TestAMachineWithoutCNI(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, os.Remove(filepath.Join(b.dir, "net")))
	require.Equal(t, Found{Plugins: map[string]string{}, Networks: map[string]string{}}, b.Look(t.Context()))
}
