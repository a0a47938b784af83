package fake

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/execution"
)

// shell runs the fake's language: lines or ";"-separated commands of words, without quoting beyond ' and ".
//
//	echo words… [>&2]   cat [file]   env   pwd   sleep 1.5   true   false   exit n   yes n (n lines of y)
//
// "sh -c script" (also bash, with a path) runs a script, "env K=V… command" sets variables.
type shell struct {
	x   *command
	ctx context.Context // its lifetime
	env map[string]string
}

// exitNotFound is what a shell exits with when it knows no such command.
const exitNotFound = 127

// known reports whether a command can be started.
func known(argv []string) bool {
	if isEnv(argv[0]) {
		argv = slices.DeleteFunc(slices.Clone(argv[1:]), func(w string) bool { return strings.Contains(w, "=") })
		if len(argv) == 0 {
			return true
		}
	}
	switch base(argv[0]) {
	case "echo", "cat", "env", "pwd", "sleep", "yes", "true", ":", "false", "exit", "sh", "bash":
		return true
	default:
		return false
	}
}

// isEnv reports whether a command is env, which may stand before the real one with variables for it.
func isEnv(name string) bool { return name == "env" || name == "/usr/bin/env" }

// base is the last part of a path, so that /bin/sh and sh are the same.
func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// run runs a command. A failure is a command that cannot be started.
func (s *shell) run(argv []string) (code int, failure string) {
	// The execution's variables go before the task's.
	s.env = map[string]string{}
	maps.Copy(s.env, s.x.t.spec.Env)
	maps.Copy(s.env, s.x.spec.Env)
	if isEnv(argv[0]) {
		rest := argv[1:]
		for len(rest) > 0 && strings.Contains(rest[0], "=") {
			k, v, _ := strings.Cut(rest[0], "=")
			s.env[k] = v
			rest = rest[1:]
		}
		if len(rest) > 0 {
			argv = rest
		}
	}
	name := base(argv[0])
	// Any flags that end in c are taken, such as -c and -lc.
	if (name == "sh" || name == "bash") && len(argv) >= 3 && strings.HasSuffix(argv[1], "c") {
		return s.script(argv[2]), ""
	}
	code, _, known := s.command(append([]string{name}, argv[1:]...), 0)
	if !known {
		return exitNotFound, "command not found: " + argv[0]
	}
	return code, ""
}

// script runs commands until one exits; the code is the last one's.
func (s *shell) script(text string) (code int) {
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ';' }) {
		words := split(line)
		if len(words) == 0 || s.ctx.Err() != nil {
			continue
		}
		stream := 0
		if words[len(words)-1] == ">&2" {
			words, stream = words[:len(words)-1], 1
		}
		c, exit, known := s.command(words, stream)
		if !known {
			s.x.write(1, []byte("sh: "+words[0]+": not found\n"))
			c = exitNotFound
		}
		if code = c; exit {
			break
		}
	}
	return code
}

// command runs one of the language's commands.
func (s *shell) command(words []string, stream int) (code int, exit, known bool) {
	args := words[1:]
	switch words[0] {
	case "echo":
		s.x.write(stream, []byte(strings.Join(s.expand(args), " ")+"\n"))
	case "cat":
		return s.cat(args, stream), false, true
	case "env":
		for _, k := range slices.Sorted(maps.Keys(s.env)) {
			s.x.write(stream, []byte(k+"="+s.env[k]+"\n"))
		}
	case "pwd":
		s.x.write(stream, []byte("/"+strings.Trim(s.x.spec.WorkDir, "/")+"\n"))
	case "sleep":
		s.x.sleep(s.ctx, seconds(args))
	case "yes":
		for range count(args) {
			s.x.write(stream, []byte("y\n"))
		}
	case "true", ":":
	case "false":
		code = 1
	case "exit":
		return count(args), true, true
	default:
		return 0, false, false
	}
	return code, false, true
}

// cat prints files of the task, or stdin until its end if no file is named. A kill ends it with 0, since run replaces the code anyway.
func (s *shell) cat(args []string, stream int) int {
	for _, name := range args {
		f := s.x.t.files.find(name)
		if f == nil || f.dir {
			s.x.write(1, []byte("cat: "+name+": No such file or directory\n"))
			return 1
		}
		s.x.write(stream, f.data)
	}
	for len(args) == 0 {
		p, err := s.x.read(s.ctx)
		if err != nil {
			break
		}
		s.x.write(stream, p)
	}
	return 0
}

// expand replaces words that are a variable.
func (s *shell) expand(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		if name, ok := strings.CutPrefix(w, "$"); ok {
			out[i] = s.env[strings.Trim(name, "{}")]
		}
	}
	return out
}

// split cuts a line into words at spaces and tabs outside of quotes. Quotes are dropped, and a quoted empty word is a word.
func split(line string) (words []string) {
	var word strings.Builder
	var quote rune
	open := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if word.Len() > 0 || open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
		}
	}
	if word.Len() > 0 || open {
		words = append(words, word.String())
	}
	return words
}

// seconds reads sleep's argument: "1.5", "100ms" or "infinity". What is none of these is 0.
func seconds(args []string) time.Duration {
	if len(args) == 0 {
		return 0
	}
	if args[0] == "infinity" {
		return forever
	}
	if d, err := time.ParseDuration(args[0]); err == nil {
		return d
	}
	f, _ := strconv.ParseFloat(args[0], 64)
	return time.Duration(f * float64(time.Second))
}

// count reads a number of times or an exit code; a missing or wrong one is 0.
func count(args []string) int {
	if len(args) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(args[0])
	return n
}

var _ execution.Session = (*session)(nil)
