package nomadbackend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// mark is the variable by which the processes of an execution are found when they are to be killed.
const mark = "DROVER_EXECUTION"

// unsupported says which limits of one execution cannot be kept without a supervisor. Errors: NotImplemented.
func unsupported(l drover.Limits) error {
	for _, f := range []struct {
		field string
		value int
	}{{"memoryMB", l.MemoryMB}, {"pids", l.Pids}, {"cpuMHz", l.CPUMHz}} {
		if f.value != 0 {
			return drover.Errorf(drover.NotImplemented, "limits.%s: runners on a Nomad cluster have only their environment's", f.field)
		}
	}
	return nil
}

// intro hides where the runner comes from and sets what limits a shell can set. $1 is the directory, $2 the user. Where
// the image names no directory, the task's own is it: nobody's files belong into the root, and "./*" must not empty it.
func intro(l drover.Limits) string {
	var s strings.Builder
	s.WriteString(`if [ -n "$1" ]; then cd -- "$1" || exit 126; ` +
		`elif [ "$PWD" = / ] && [ -d "$NOMAD_TASK_DIR" ]; then cd -- "$NOMAD_TASK_DIR"; fi; drover_user=$2; shift 2` + "\n")
	s.WriteString(`for v in $(env); do case $v in NOMAD_*=*) unset "${v%%=*}" 2>/dev/null;; esac; done` + "\n")
	if l.CPU > 0 {
		fmt.Fprintf(&s, "ulimit -t %d\n", max(1, int64(l.CPU.Seconds())))
	}
	if l.OpenFiles > 0 {
		fmt.Fprintf(&s, "ulimit -n %d\n", l.OpenFiles)
	}
	if l.FileSizeMB > 0 {
		fmt.Fprintf(&s, "ulimit -f %d\n", l.FileSizeMB*2048) // blocks of 512 bytes
	}
	return s.String()
}

// outro becomes the user, with what the image has for it, and runs the rest of the arguments. Busybox has a setpriv that
// knows no users, and its su, without the --, takes a -c of the command for its own.
const outro = `if [ -z "$drover_user" ] || [ "$(id -u)" != 0 ]; then exec env "$@"; fi
case $(setpriv --help 2>&1) in *--reuid*)
  gid=$(id -g "$drover_user" 2>/dev/null) || {
    case $drover_user in *[!0-9]*) echo "user $drover_user: not in the image" >&2; exit 126;; esac
    gid=$drover_user
  }
  exec setpriv --reuid="$drover_user" --regid="$gid" --clear-groups env "$@";;
esac
id -u "$drover_user" >/dev/null 2>&1 || { echo "user $drover_user: not in the image" >&2; exit 126; }
if [ -x /sbin/setuser ]; then exec /sbin/setuser "$drover_user" env "$@"; fi
if command -v su >/dev/null 2>&1; then exec su -s /bin/sh "$drover_user" -c 'exec env "$@"' -- sh "$@"; fi
echo "the image has no setpriv, setuser or su to become user $drover_user with" >&2; exit 126
`

// wrap makes the argv that Nomad is asked to run for the spec. Nothing of the spec is quoted: all of it is arguments.
func wrap(spec execution.Spec) []string {
	user := spec.User
	switch {
	case spec.Privileged:
		user = ""
	case user == "":
		user = "nobody"
	}
	streams := 2
	if spec.TTY {
		streams = 1
	}
	script := trailerScript(intro(spec.Limits)+outro, streams)
	argv := []string{"/bin/sh", "-c", script, "drover", spec.ID, spec.WorkDir, user, mark + "=" + spec.ID}
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		argv = append(argv, name+"="+spec.Env[name])
	}
	if strings.Contains(spec.Argv[0], "=") { // env would take it for a variable
		argv = append(argv, "/bin/sh", "-c", `exec "$@"`, "sh")
	}
	return append(argv, spec.Argv...)
}

// killScript signals all processes of the execution $1 with $2.
const killScript = `for d in /proc/[0-9]*; do
  if tr '\0' '\n' <"$d/environ" 2>/dev/null | grep -qx "` + mark + `=$1"; then kill -s "$2" "${d#/proc/}" 2>/dev/null; fi
done; exit 0`
