package machine

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/clock"
)

const (
	bootEvery = 2 * time.Second
	// failures of the run probe in a row that make a node broken.
	failures = 3
	shell    = "/bin/sh"
)

// boot tries the boot probe until it succeeds; false = ctx ended.
func (g *Guard) boot(ctx context.Context) bool {
	said := ""
	for g.cfg.BootProbe != "" {
		text, ok := g.try(ctx, "boot", g.cfg.BootProbe)
		if ok {
			g.deps.Log.Info("the boot probe succeeded")
			break
		}
		if text != said && ctx.Err() == nil {
			g.deps.Log.Warn("the boot probe fails, trying again until it succeeds", "probe", g.cfg.BootProbe, "says", text)
			said = text
		}
		if !clock.Sleep(ctx, g.deps.Clock, bootEvery) {
			return false
		}
	}
	close(g.booted)
	return ctx.Err() == nil
}

// probe tries the run probe until ctx ends.
func (g *Guard) probe(ctx context.Context) {
	failed := 0
	for clock.Sleep(ctx, g.deps.Clock, g.cfg.ProbeEvery) {
		text, ok := g.try(ctx, "run", g.cfg.RunProbe)
		switch {
		case ctx.Err() != nil:
			return
		case ok:
			failed, text = 0, ""
		default:
			failed++
			if failed < failures {
				continue
			}
		}
		g.mu.Lock()
		changed := (g.news.broken == "") != (text == "")
		if changed {
			g.news.broken = text
		}
		g.mu.Unlock()
		if changed {
			g.deps.Log.Warn("the run probe changed its mind", "probe", g.cfg.RunProbe, "broken", text)
		}
	}
}

// try runs a probe once; text says why it failed.
func (g *Guard) try(ctx context.Context, kind, probe string) (text string, ok bool) {
	if g.deps.Probed != nil {
		defer func(began time.Time) { g.deps.Probed(kind, g.deps.Clock.Now().Sub(began), ok) }(g.deps.Clock.Now())
	}
	ctx, cancel := g.deps.Clock.WithTimeout(ctx, g.cfg.ProbeTimeout)
	defer cancel()
	out, err := g.deps.Command(ctx, []string{shell, "-c", probe})
	if err == nil {
		return "", true
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end within %v", g.cfg.ProbeTimeout)
	}
	const most = 300
	out = bytes.TrimSpace(out)
	return strings.TrimSpace(fmt.Sprintf("%v %s", err, out[max(0, len(out)-most):])), false
}

// run runs a program with what it started, and returns what it printed.
func run(ctx context.Context, argv []string) ([]byte, error) {
	path := argv[0]
	if path == shell { // an image with nothing but our program has no shell
		if _, err := exec.LookPath(shell); err != nil {
			argv = strings.Fields(argv[2])
			if len(argv) == 0 {
				return nil, nil
			}
			path = argv[0]
		}
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.WaitDelay = time.Second // its children may hold the pipe
	return cmd.CombinedOutput()
}
