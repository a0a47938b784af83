package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover/internal/e2e/program"
	"github.com/drover-project/drover/internal/node/device/devicetest"
)

var (
	fence    = regexp.MustCompile("(?ms)^```(hcl|sh)\n(.*?)^```$")
	fileName = regexp.MustCompile(`^# (\S+\.hcl)\n`)
)

// tutorial is what a document has its reader write and enter.
type tutorial struct {
	files map[string]string
	walks map[string]string // commands, by the title of the section
}

func readTutorial(t *testing.T, path string, changes ...string) tutorial {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	out := tutorial{map[string]string{}, map[string]string{}}
	for _, section := range strings.Split(strings.NewReplacer(changes...).Replace(string(text)), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for _, block := range fence.FindAllStringSubmatch(body, -1) {
			if block[1] == "sh" {
				out.walks[title] += block[2]
				continue
			}
			name := fileName.FindStringSubmatch(block[2])
			require.NotNil(t, name, "a file's first line says its name: %s", block[2])
			out.files[name[1]] = block[2]
		}
	}
	return out
}

// walk enters a section's commands as a reader would, in the folder of the files, and returns what they say.
func (a *agent) walk(t *testing.T, dir, commands string) string {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	require.NoError(t, err)
	defer said.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	shell.Dir, shell.Stdout, shell.Stderr = dir, said, said
	shell.Env = append(os.Environ(), "DROVER_ADDR=http://"+a.addr, "PATH="+filepath.Dir(program.Binary)+":"+os.Getenv("PATH"))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	all := func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) } // also what it left in the background
	shell.Cancel = all
	require.NoError(t, shell.Start())
	t.Cleanup(func() { _ = all() })
	err = shell.Wait()
	text, readErr := os.ReadFile(said.Name())
	require.NoError(t, readErr)
	require.NoError(t, err, "%s\nthe agent said:\n%s", text, a.Output())
	return string(text)
}

// The tutorial of workloads works, word for word: on a machine with a GPU that is none, and with ports that are free.
func TestTheTutorialOfWorkloads(t *testing.T) {
	t.Parallel()
	m := devicetest.New(t)
	m.NVIDIA(devicetest.GPU{UUID: "GPU-small", Model: "Tesla T4", Memory: 15360}, devicetest.GPU{
		UUID: "GPU-big", Model: "NVIDIA A100", Minor: 1, Memory: 40960,
	})
	names, served := freePort(t), freePort(t)
	doc := readTutorial(t, "../../docs/tutorials/workloads.md", "dns {}", "dns {\n  port = "+names+"\n}", "8600", names, "8099", served)
	dir := t.TempDir()
	for name, text := range doc.files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	plugin := fmt.Sprintf("plugin \"nvidia\" {\n  config {\n    root = %q\n    tool = %q\n  }\n}\n", m.Root, m.Tool)
	a := start(t, append(append([]string{"-dev"}, config(t, "", plugin)...), "-config", filepath.Join(dir, "agent.hcl"))...)

	said := a.walk(t, dir, doc.walks["A web service"])
	t.Log(said)
	for _, one := range []string{"not deployed", "live"} {
		require.Contains(t, said, one)
	}
	// The readers found three replicas of one version each: the first, then the second in spite of the third, then the first again.
	require.Equal(t, "one one one two two two one one one", strings.Join(versions(said), " "))

	said = a.walk(t, dir, doc.walks["A database"])
	t.Log(said)
	for _, row := range []string{"(1, 'fir')", "(2, 'fir,sec')", "(3, 'fir,sec,sec')"} {
		require.Contains(t, said, row)
	}
	require.NotContains(t, said, "-password", "no secret is printed")

	t.Log(a.walk(t, dir, doc.walks["A batch of every night"]))
	c := a.nomad()
	eventually(t, "the report of the night", func() (bool, string) {
		list, _, err := c.Allocations().List(nil)
		require.NoError(t, err)
		for _, alloc := range list {
			if strings.HasPrefix(alloc.JobID, "nightly/periodic-") && alloc.ClientStatus == "complete" {
				return a.walk(t, dir, "drover alloc logs "+alloc.ID) == "7 sold\n", alloc.ID
			}
		}
		return false, fmt.Sprint(len(list))
	})

	said = a.walk(t, dir, doc.walks["A program that needs a GPU"])
	require.Contains(t, said, "training on GPU-big")
	a.walk(t, dir, doc.walks["Away with it"])
	nothingRuns(t, c)
}

// versions are those that readers found.
func versions(said string) (out []string) {
	for _, found := range regexp.MustCompile(`(?m)^version (\w+), replica \d$`).FindAllSubmatch(bytes.TrimSpace([]byte(said)), -1) {
		out = append(out, string(found[1]))
	}
	return out
}
