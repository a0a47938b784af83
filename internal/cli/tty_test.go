package cli_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// A terminal here becomes one there, with its size; Ctrl-C goes to the command.
func TestTerminals(t *testing.T) {
	t.Parallel()
	address, stop, err := devAgent()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	job := strings.NewReader(`job "tty" {
  group "g" {
    update {
      max_parallel = 0
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["3600"]
      }
    }
  }
}`)
	drover(t, address, job, "job", "run", "-")
	drover(t, address, nil, "env", "put", "scratch", "-image", "host")
	for name, args := range map[string][]string{
		"alloc exec": {"alloc", "exec", "-job", "tty"},
		"run":        {"run", "scratch", "--"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Nomad's exec protocol sends the size after the start, so it may come a moment later.
			out, code := inTerminal(t, address, "", append(slices.Clone(args), "sh", "-c",
				`until [ "$(stty size)" = "33 99" ]; do sleep 0.01; done; stty size; exit 6`)...)
			require.Contains(t, out, "33 99")
			require.Equal(t, 6, code)
			out, code = inTerminal(t, address, "\x03", append(slices.Clone(args), "sh", "-c",
				"trap 'echo got it; exit 7' INT; echo ready; while :; do sleep 0.05; done")...)
			require.Contains(t, out, "got it")
			require.Equal(t, 7, code)
			_, code = inTerminal(t, address, "~.", append(slices.Clone(args), "sh", "-c",
				"trap '' INT; echo ready; while :; do sleep 0.05; done")...)
			require.Equal(t, 130, code, "there is a way out")
			for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
				require.Equal(t, want, signalled(t, address, signal, append(slices.Clone(args), "sh", "-c", "echo ready; sleep 1000")...), signal)
			}
		})
	}
}

// signalled runs a command without a terminal, signals drover once the command says something, and returns drover's code.
func signalled(t *testing.T, address string, signal syscall.Signal, args ...string) int {
	t.Helper()
	caught := make(chan os.Signal, 1) // where we ignore it, as under nohup, the program would, too
	ossignal.Notify(caught, signal)
	defer ossignal.Stop(caught)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "DROVER_ADDR="+address)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("ready\n")))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(signal))
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	_ = cmd.Wait() // its code tells
	return cmd.ProcessState.ExitCode()
}

// drover runs one command, which must end well.
func drover(t *testing.T, address string, stdin io.Reader, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), "DROVER_ADDR="+address), stdin
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// inTerminal runs a command in a terminal, types keys once it says that it is ready, and returns what it printed.
func inTerminal(t *testing.T, address, keys string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, args...)
	cmd.Env = append(os.Environ(), "DROVER_ADDR="+address)
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 99})
	require.NoError(t, err)
	defer terminal.Close()
	var text strings.Builder
	buf := make([]byte, 1024)
	for {
		n, err := terminal.Read(buf)
		text.Write(buf[:n])
		if keys != "" && strings.Contains(text.String(), "ready") {
			_, err := terminal.WriteString(keys)
			require.NoError(t, err)
			keys = ""
		}
		if errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	_ = cmd.Wait() // its code tells
	return text.String(), cmd.ProcessState.ExitCode()
}
