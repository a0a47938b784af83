package nomadbackend

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/execution"
)

// files of a runner, through small shell commands in it.
type files struct {
	b       *Backend
	allocID string
}

var _ execution.Files = (*files)(nil)

// statFormat is mode, size, time, ids and names of a file.
const statFormat = `%f %s %Y %u %g %U %G`

// listScript lists a file, or a directory with what $2 allows. Each entry is stat's line, the name and a link's
// target; NUL ends both of the latter, because names may hold line ends. It ends with 44 where there is nothing, or
// no permission. What vanishes while it runs is left out.
const listScript = `if [ -e "$1" ] && [ ! -d "$1" ]; then
  stat -c "` + statFormat + `" -- "$1" || exit 44; printf "%s\0" "${1##*/}"; readlink -- "$1"; printf "\0"; exit 0
fi
cd -- "$1" 2>/dev/null && ls >/dev/null 2>&1 || exit 44
find . -mindepth 1 $2 -exec sh -c 'for p; do
  stat -c "` + statFormat + `" -- "$p" || continue; printf "%s\0" "${p#./}"; readlink -- "$p"; printf "\0"
  done' sh {} + 2>/dev/null; exit 0`

// readScript writes stat's line and then the bytes from $2 on, counted from 1; $3 is how many, 0 for all. Links are
// followed, and only regular files are read: a pipe would block for ever.
const readScript = `[ -f "$1" ] && [ -r "$1" ] || exit 44
stat -L -c "` + statFormat + `" -- "$1" || exit 44
if [ "$3" = 0 ]; then tail -c "+$2" -- "$1"; else tail -c "+$2" -- "$1" | head -c "$3"; fi`

// writeScript writes stdin to a file beside $1 and renames it, so that nobody sees half a file. $2 is the mode, $3 the owner or
// empty, and $4 the size, or -1 if it is not known. A short upload ends with 46, every other failure with 45.
const writeScript = `d=$(dirname -- "$1") && mkdir -p -- "$d" && t="$d/.drover-$$" && cat >"$t" || exit 45
if [ "$4" != -1 ] && [ "$(wc -c <"$t")" -ne "$4" ]; then rm -f -- "$t"; echo "the upload was cut" >&2; exit 46; fi
{ [ -z "$3" ] || chown -- "$3" "$t"; } && chmod "$2" "$t" && mv -f -- "$t" "$1" || { rm -f -- "$t"; exit 45; }`

const (
	mkdirScript = `mkdir -p -- "$1" && chmod "$2" "$1" && { [ -z "$3" ] || chown -- "$3" "$1"; } || exit 45`
	// The working directory itself stays.
	emptyScript = `case $(pwd -P) in /|//) echo 'the root directory is not emptied: give the image a working directory' >&2; exit 45;; esac
find . -mindepth 1 -maxdepth 1 -exec rm -rf -- {} + || exit 45`
	// What a "*" leaves are folders that something is mounted on, as a task's secrets: they have to be empty.
	deleteScript = `left() { for f in "$1"/*; do [ ! -e "$f" ] || { [ -d "$f" ] && [ -z "$(ls -A -- "$f")" ]; } || return 1; done; }
for p; do case $p in '*'|'./*'|*/'*') d=.; case $p in */*) d=${p%/*};; esac
  case $(cd -- "${d:-/}" 2>/dev/null && pwd -P) in /|//)
    echo 'the root directory is not emptied: give the image a working directory' >&2; exit 45;;
  esac
  rm -rf -- "$d"/* || left "$d";; *) rm -rf -- "$p";; esac || exit 45
done`
)

// change runs a helper script that changes files, as root. Where it has ended and its output was cut it is repeated, as far
// as its input can be had again: all of them do the same once more. Errors: as of do.
func (f *files) change(ctx context.Context, script string, stdin io.Reader, args ...string) error {
	input, repeatable := rewinding(stdin)
	after := []error{errCut}
	return f.b.again(ctx, func() error {
		in := input()
		err := f.do(ctx, script, true, in, nil, args...)
		if errors.Is(err, errCut) && !repeatable() {
			return drover.Errorf(drover.Unavailable, "%s", err.Error())
		}
		return err
	}, after...)
}

// do runs a helper script as the runner's user, or its root. Errors: NotFound, Forbidden, Unavailable.
func (f *files) do(ctx context.Context, script string, privileged bool, stdin io.Reader, stdout io.Writer, args ...string) error {
	spec := execution.Spec{ID: f.b.deps.IDs.New(), Privileged: privileged, Argv: append([]string{"/bin/sh", "-c", script, "drover"}, args...)}
	err := f.b.runWrapped(ctx, f.allocID, spec, stdin, stdout)
	if bad, ok := errors.AsType[*failure](err); ok {
		code := drover.Forbidden
		if bad.code == 44 {
			code = drover.NotFound
		}
		return drover.Errorf(code, "%s: %s", cmp.Or(args[0], "."), cmp.Or(bad.Error(), "not found, or no permission"))
	}
	return err
}

// safe keeps a path from being taken for an option or for stdin.
func safe(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return "./" + p
}

// List implements execution.Files.
func (f *files) List(ctx context.Context, r execution.FileRequest) ([]execution.FileInfo, error) {
	depth := "-maxdepth 1"
	if r.Recursive {
		depth = ""
	}
	var out bytes.Buffer
	err := f.b.again(ctx, func() error {
		out.Reset()
		// $2 is one of our two texts, and is split into words there
		return f.do(ctx, strings.Replace(listScript, "$2", depth, 1), r.Privileged, nil, &out, safe(r.Path))
	}, errCut, errBroken)
	if err != nil {
		return nil, err
	}
	return parseListing(out.String())
}

// parseListing reads what listScript wrote, sorted by path. An error means that the image's stat has another
// format.
func parseListing(text string) ([]execution.FileInfo, error) {
	infos := []execution.FileInfo{}
	fields := strings.Split(text, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		stat, name, _ := strings.Cut(fields[i], "\n")
		info, err := parseStat(stat)
		if err != nil {
			return nil, err
		}
		info.Path, info.LinkTarget = name, strings.TrimSuffix(fields[i+1], "\n")
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b execution.FileInfo) int { return strings.Compare(a.Path, b.Path) })
	return infos, nil
}

// letters are the types of files, by the highest four bits of a mode, as ls shows them.
var letters = map[uint64]string{0o04: "d", 0o10: "-", 0o12: "l", 0o01: "p", 0o14: "s", 0o02: "c", 0o06: "b"}

// parseStat reads one line of statFormat. Names of owners come last, as those may have blanks. Errors: Unavailable.
func parseStat(text string) (i execution.FileInfo, err error) {
	parts := strings.SplitN(text, " ", 7)
	if len(parts) != 7 {
		return i, drover.Errorf(drover.Unavailable, "the runner's stat said %q", text)
	}
	mode, err := strconv.ParseUint(parts[0], 16, 32)
	if err != nil {
		return i, drover.Errorf(drover.Unavailable, "the runner's stat said %q: %w", text, err)
	}
	var n [4]int64
	for k := range n {
		if n[k], err = strconv.ParseInt(parts[k+1], 10, 64); err != nil {
			return i, drover.Errorf(drover.Unavailable, "the runner's stat said %q: %w", text, err)
		}
	}
	return execution.FileInfo{
		Type: letters[mode>>12], Mode: uint32(mode & 0o7777), Size: n[0], ModTime: time.Unix(n[1], 0).UTC(),
		UID: int(n[2]), GID: int(n[3]), Owner: parts[5], Group: parts[6],
	}, nil
}

// Apply implements execution.Files.
func (f *files) Apply(ctx context.Context, changes []execution.FileChange) error {
	for _, c := range changes {
		var err error
		switch {
		case c.Delete:
			p, script := c.Path, deleteScript
			switch {
			case path.Clean(p) == ".":
				script = emptyScript
			case p != "*" && p != "./*":
				p = safe(p)
			}
			err = f.change(ctx, script, nil, p)
		case c.Mkdir:
			err = f.change(ctx, mkdirScript, nil, safe(c.Path), octal(c.Mode, 0o1777), c.Owner)
		default:
			err = f.write(ctx, c, bytes.NewReader(c.Data), int64(len(c.Data)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Write implements execution.Files.
func (f *files) Write(ctx context.Context, c execution.FileChange, r io.Reader) error {
	return f.write(ctx, c, r, -1)
}

// write writes one file; size is -1 if it is not known before. A known size shows that the cluster cut the upload.
func (f *files) write(ctx context.Context, c execution.FileChange, r io.Reader, size int64) error {
	if strings.HasSuffix(c.Path, "/") || c.Path == "" {
		return drover.Errorf(drover.Invalid, "path %q: want a file's", c.Path)
	}
	return f.change(ctx, writeScript, r, safe(c.Path), octal(c.Mode, 0o744), c.Owner, strconv.FormatInt(size, 10))
}

// octal renders a mode for chmod; 0 means that the caller named none.
func octal(mode, otherwise uint32) string { return fmt.Sprintf("%o", cmp.Or(mode, otherwise)) }

// Extract implements execution.Files.
func (f *files) Extract(ctx context.Context, r execution.FileRequest, tar io.Reader) error {
	return f.change(ctx, `mkdir -p -- "$1" && tar -x -f - -C "$1"`, tar, safe(r.Path))
}
