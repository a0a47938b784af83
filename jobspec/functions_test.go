package jobspec

import (
	"os"
	"path/filepath"
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

func TestFunctions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.conf"), []byte("text"), 0o600))
	for expr, want := range map[string]string{
		`file("a.conf")`:       "text",
		`filebase64("a.conf")`: "dGV4dA==",
		`jsonencode([fileexists("a.conf"), fileexists("b")])`: "[true,false]",
		`join(",", fileset(".", "*.conf"))`:                   "a.conf",
		`basename("/x/y.z")`:                                  "y.z",
		`dirname("/x/y.z")`:                                   "/x",
		`abspath("a.conf")`:                                   filepath.Join(dir, "a.conf"),
		`cidrhost("10.12.112.0/20", 16)`:                      "10.12.112.16",
		`cidrhost("10.0.0.0/8", -1)`:                          "10.255.255.255",
		`cidrhost("fd00:fd12:3456:7890::/72", 34)`:            "fd00:fd12:3456:7890::22",
		`cidrnetmask("172.16.0.0/12")`:                        "255.240.0.0",
		`cidrsubnet("172.16.0.0/12", 4, 2)`:                   "172.18.0.0/16",
		`join(",", cidrsubnets("10.1.0.0/16", 4, 4, 8, 4))`:   "10.1.0.0/20,10.1.16.0/20,10.1.32.0/24,10.1.48.0/20",
		`sha1("a")`:                                               "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8",
		`md5("a")`:                                                "0cc175b9c0f1b6a831c399e269772661",
		`uuidv5("dns", "example.com")`:                            "cfbff0d1-9375-5685-968c-48ce8b15ae17",
		`timestamp()`:                                             "2026-11-21T06:00:00Z",
		`urlencode("a b/c")`:                                      "a+b%2Fc",
		`yamldecode("a: [1, 2]").a[1]`:                            "2",
		`yamlencode({ a = 1 })`:                                   "\"a\": 1\n",
		`length("abc") + length([1, 2])`:                          "5",
		`index(["a", "b"], "b")`:                                  "1",
		`join(",", toset(["b", "a", "a"]))`:                       "a,b",
		`lookup({ a = "1" }, "b", "none")`:                        "none",
		`convert("3", number) + 1`:                                "4",
		`"${length(uuidv4())}"`:                                   "36",
		`"%{ for x in ["a", "b"] }<${x}>%{ endfor }"`:             "<a><b>",
		`"%{ if true }yes%{ else }no%{ endif }"`:                  "yes",
		`join(",", [for k, v in { a = 1, b = 2 } : "${k}=${v}"])`: "a=1,b=2",
		`true ? "x" : "y"`:                                        "x",
		`try(local.nope, "fallback")`:                             "fallback",
	} {
		got, err := evaluated(t, expr, dir)
		require.NoError(t, err, expr)
		require.Equal(t, want, got, expr)
	}
	for expr, want := range map[string]string{
		`file("nope")`:                      "no such file",
		`cidrhost("10.0.0.0/30", 9)`:        "no host number",
		`cidrsubnet("10.0.0.0/30", 4, 0)`:   "can't be extended",
		`cidrsubnets("10.0.0.0/30", 1,1,1)`: "no room",
		`cidrnetmask("fd00::/8")`:           "IPv4",
		`uuidv5("x", "y")`:                  "must be dns",
		`index(["a"], "b")`:                 "item not found",
		`bcrypt("a", 99)`:                   "cost",
	} {
		_, err := evaluated(t, expr, dir)
		require.ErrorContains(t, err, want, expr)
	}
	_, err := evaluated(t, `file("/etc/passwd")`, "")
	require.ErrorContains(t, err, "only the command line reads them", "a server reads no files for a client")
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
