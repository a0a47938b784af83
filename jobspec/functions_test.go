package jobspec

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
)

// evaluated is what an expression gives as text, in a job file read from dir.
func evaluated(t *testing.T, expr, dir string) (string, error) {
	t.Helper()
	j, err := Parse([]byte("job \"x\" {\n  name = "+expr+"\n}\n"), Options{
		Dir: dir, Now: func() time.Time { return time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		return "", err
	}
	return j.Name, nil
}

// calls are expressions, with at least one for each function, and what they give as text. DIR is the job file's folder.
var calls = []struct{ expr, want string }{
	{`abs(-3)`, "3"},
	{`ceil(1.2)`, "2"},
	{`floor(1.8)`, "1"},
	{`signum(-7)`, "-1"},
	{`pow(2, 10)`, "1024"},
	{`log(8, 2)`, "3"},
	{`max(1, 5, 3)`, "5"},
	{`min(4, 2)`, "2"},
	{`parseint("ff", 16)`, "255"},
	{`chomp("a\n\n")`, "a"},
	{`indent(2, "a\nb")`, "a\n  b"},
	{`lower("AbC")`, "abc"},
	{`upper("AbC")`, "ABC"},
	{`title("a bc")`, "A Bc"},
	{`strlen("äb")`, "2"},
	{`strrev("abc")`, "cba"},
	{`substr("hello", 1, 3)`, "ell"},
	{`trim("?!x!?", "?!")`, "x"},
	{`trimprefix("v1.2", "v")`, "1.2"},
	{`trimsuffix("a.nomad", ".nomad")`, "a"},
	{`trimspace("  a ")`, "a"},
	{`replace("a-b-c", "-", "+")`, "a+b+c"},
	{`regex("[a-z]+", "53abc12")`, "abc"},
	{`join("", regexall("[0-9]", "a1b2"))`, "12"},
	{`regex_replace("a1b2", "[0-9]", "#")`, "a#b#"},
	{`format("%s-%03d", "x", 7)`, "x-007"},
	{`join(",", formatlist("%s!", ["a", "b"]))`, "a!,b!"},
	{`join(",", split("-", "a-b"))`, "a,b"},
	{`length(chunklist(["a", "b", "c"], 2))`, "2"},
	{`coalesce("", "b", "c")`, "b"},
	{`join("", coalescelist([], ["x"]))`, "x"},
	{`join("", compact(["a", "", "b"]))`, "ab"},
	{`join("", concat(["a"], ["b"]))`, "ab"},
	{`contains(["a", "b"], "b")`, "true"},
	{`join("", distinct(["a", "a", "b"]))`, "ab"},
	{`element(["a", "b", "c"], 4)`, "b"},
	{`join("", flatten([["a"], [["b"]]]))`, "ab"},
	{`index(["a", "b"], "b")`, "1"},
	{`join("", keys({ b = 1, a = 2 }))`, "ab"},
	{`join("", values({ b = "1", a = "2" }))`, "21"},
	{`length("abc") + length([1, 2]) + length({ a = 1 })`, "6"},
	{`lookup({ a = "1" }, "b", "none")`, "none"},
	{`merge({ a = "1" }, { a = "2" }).a`, "2"},
	{`join(",", range(3))`, "0,1,2"},
	{`join("", reverse(["a", "b"]))`, "ba"},
	{`join("", setintersection(["a", "b"], ["b", "c"]))`, "b"},
	{`join("", setunion(["a"], ["b", "a"]))`, "ab"},
	{`length(setproduct(["a", "b"], ["x", "y", "z"]))`, "6"},
	{`join("", slice(["a", "b", "c"], 1, 2))`, "b"},
	{`join("", sort(["b", "a"]))`, "ab"},
	{`zipmap(["k"], ["v"]).k`, "v"},
	{`can(local.nope)`, "false"},
	{`try(local.nope, "fallback")`, "fallback"},
	{`convert("3", number) + 1`, "4"},
	{`tostring(5)`, "5"},
	{`tonumber("5") + 1`, "6"},
	{`tobool("true")`, "true"},
	{`join("", tolist(["a"]))`, "a"},
	{`join(",", toset(["b", "a", "a"]))`, "a,b"},
	{`tomap({ a = "x" }).a`, "x"},
	{`csvdecode("a,b\n1,2\n")[0].b`, "2"},
	{`jsondecode("[1, {\"a\": 2}]")[1].a`, "2"},
	{`jsonencode({ a = [1, true] })`, `{"a":[1,true]}`},
	{`yamldecode("a: [1, 2]").a[1]`, "2"},
	{`yamlencode({ a = 1 })`, "\"a\": 1\n"},
	{`base64encode("text")`, "dGV4dA=="},
	{`base64decode("dGV4dA==")`, "text"},
	{`urlencode("a b/c")`, "a+b%2Fc"},
	{`md5("a")`, "0cc175b9c0f1b6a831c399e269772661"},
	{`sha1("a")`, "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"},
	{`sha256("a")`, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
	{`substr(sha512("a"), 0, 32)`, "1f40fc92da241694750979ee6cf582f2"},
	{`substr(bcrypt("a", 4), 0, 7)`, "$2a$04$"},
	{`length(uuidv4())`, "36"},
	{`uuidv5("dns", "example.com")`, "cfbff0d1-9375-5685-968c-48ce8b15ae17"},
	{`uuidv5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "example.com")`, "cfbff0d1-9375-5685-968c-48ce8b15ae17"},
	{`timestamp()`, "2026-11-21T06:00:00Z"},
	{`formatdate("YYYY-MM", timestamp())`, "2026-11"},
	{`timeadd(timestamp(), "90m")`, "2026-11-21T07:30:00Z"},
	{`cidrhost("10.12.112.0/20", 16)`, "10.12.112.16"},
	{`cidrhost("10.0.0.0/8", -1)`, "10.255.255.255"},
	{`cidrhost("fd00:fd12:3456:7890::/72", 34)`, "fd00:fd12:3456:7890::22"},
	{`cidrnetmask("172.16.0.0/12")`, "255.240.0.0"},
	{`cidrsubnet("172.16.0.0/12", 4, 2)`, "172.18.0.0/16"},
	{`cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)`, "fd00:fd12:3456:7800:a200::/72"},
	{`join(",", cidrsubnets("10.1.0.0/16", 4, 4, 8, 4))`, "10.1.0.0/20,10.1.16.0/20,10.1.32.0/24,10.1.48.0/20"},
	{`file("a.conf")`, "text"},
	{`filebase64("a.conf")`, "dGV4dA=="},
	{`file("sub/b.conf")`, "deep"},
	{`jsonencode([fileexists("a.conf"), fileexists("b")])`, "[true,false]"},
	{`join(",", fileset(".", "*.conf"))`, "a.conf"},
	{`join(",", fileset(".", "**/*.conf"))`, "a.conf,sub/b.conf"},
	{`length(fileset("sub", "*.none"))`, "0"},
	{`basename("/x/y.z")`, "y.z"},
	{`dirname("/x/y.z")`, "/x"},
	{`pathexpand("/x")`, "/x"},
	{`abspath("a.conf")`, "DIR/a.conf"},
	{`abspath("/x/../y")`, "/y"},
	{`"%{ for x in ["a", "b"] }<${x}>%{ endfor }"`, "<a><b>"},
	{`"%{ if true }yes%{ else }no%{ endif }"`, "yes"},
	{`join(",", [for k, v in { a = 1, b = 2 } : "${k}=${v}"])`, "a=1,b=2"},
	{`true ? "x" : "y"`, "x"},
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.conf"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "b.conf"), []byte("deep"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "binary"), []byte{0xff, 0xfe}, 0o600))
	return dir
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	called := map[string]bool{}
	word := regexp.MustCompile(`[a-z0-9_]+\(`)
	for _, c := range calls {
		got, err := evaluated(t, c.expr, dir)
		require.NoError(t, err, c.expr)
		require.Equal(t, strings.Replace(c.want, "DIR", dir, 1), got, c.expr)
		for _, name := range word.FindAllString(c.expr, -1) {
			called[strings.TrimSuffix(name, "(")] = true
		}
	}
	for name := range functions(Options{Dir: dir}) {
		require.True(t, called[name], "no expression calls %s", name)
	}
}

func TestFunctionsThatFailSayWhy(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	for expr, want := range map[string]string{
		`file("nope")`:                      "no file exists",
		`file("binary")`:                    "not valid UTF-8",
		`fileexists("sub")`:                 "not a regular file",
		`cidrhost("10.0.0.0/30", 9)`:        "prefix of 30",
		`cidrhost("10.0.0.0", 1)`:           "invalid CIDR",
		`cidrsubnet("10.0.0.0/30", 4, 0)`:   "insufficient address space",
		`cidrsubnet("10.0.0.0/24", 2, 9)`:   "prefix extension of 2",
		`cidrsubnets("10.0.0.0/30", 1,1,1)`: "not enough remaining address space",
		`uuidv5("x", "y")`:                  "doesn't support namespace",
		`index(["a"], "b")`:                 "item not found",
		`index("a", "b")`:                   "must be a list",
		`bcrypt("a", 99)`:                   "the cost is at most",
		`bcrypt("a", 4, 4)`:                 "no more than two arguments",
		`base64decode("?")`:                 "base64",
		`tonumber("x")`:                     "number",
		`tobool("maybe")`:                   "bool",
		`regex("[", "a")`:                   "regexp",
		`coalesce("", "")`:                  "no non-null",
	} {
		_, err := evaluated(t, expr, dir)
		require.ErrorContains(t, err, want, expr)
	}
}

// A server reads no files for a client, and gives away nothing of its folders; what only looks at a path's text works.
func TestWithoutAFolderNoFilesAreRead(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		`file("/etc/passwd")`, `filebase64("/etc/passwd")`, `fileexists("/etc/passwd")`, `join(",", fileset("/etc", "*"))`,
		`abspath("x")`, `pathexpand("~/x")`, `try(file("/etc/passwd"), fileexists("/etc/passwd"))`,
	} {
		_, err := evaluated(t, expr, "")
		require.ErrorContains(t, err, "only the command line reads them", expr)
	}
	got, err := evaluated(t, `"${basename("/a/b")} ${dirname("/a/b")}"`, "")
	require.NoError(t, err)
	require.Equal(t, "b /a", got)
}

func TestWithoutAClockThereIsNoTimestamp(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte("job \"x\" {\n  name = timestamp()\n}\n"), Options{})
	require.ErrorContains(t, err, "there is no clock here")
}

func TestVariablesAreChecked(t *testing.T) {
	t.Parallel()
	const text = `
variable "n" {
  type      = number
  sensitive = true
  validation {
    condition     = var.n > 0 && var.n < 10
    error_message = "must be from 1 to 9"
  }
}
job "x" { priority = var.n }
`
	j, err := Parse([]byte(text), Options{Vars: map[string]string{"n": "3"}})
	require.NoError(t, err)
	require.Equal(t, 3, j.Priority)
	_, err = Parse([]byte(text), Options{Vars: map[string]string{"n": "30"}})
	require.ErrorContains(t, err, "must be from 1 to 9")
	_, err = Parse([]byte(text), Options{VarFile: "n = 1\nm = 2\n"})
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
	require.ErrorContains(t, err, `variables:2,1-2: Undeclared variable`)
	_, err = Parse([]byte(text), Options{Vars: map[string]string{"n": "1", "q": "1"}, VarNames: []string{"q"}})
	require.EqualError(t, err, `job file: Undeclared variable; The file declares no variable "q".`)
}
