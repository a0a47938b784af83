package traces

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
)

// stays is how long an end has to last, where nobody has recorded that it does not.
const stays = 3 * time.Second

// TestWalks does what a team does that comes from Nomad, with Nomad's commands only.
func TestWalks(t *testing.T) {
	t.Parallel()
	var shared, alone []walk
	for _, w := range readWalks(t, histories(t)) {
		switch {
		case !pickedOut(w.name, representativeWalks):
		case w.alone:
			alone = append(alone, w)
		default:
			shared = append(shared, w)
		}
	}
	l, m := &load{}, readManual(t)
	go l.measure(t.Context()) // ends with the test
	together := func(name string, list []walk, workers int) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, "walks-"+name)
			next := make(chan walk, len(list))
			for _, w := range list {
				next <- w
			}
			close(next)
			var running sync.WaitGroup
			for range min(workers, len(list)) {
				running.Go(func() {
					for w := range next {
						p := &stroll{walk: w, cluster: c, load: l, manual: m}
						began := time.Now()
						if err := p.run(context.WithoutCancel(t.Context())); err != nil {
							t.Errorf("%s (%s, load %.1f): %v", w.name, time.Since(began).Round(time.Second), l.factor(), err)
						} else {
							t.Logf("%s ends as in Nomad (%s)", w.name, time.Since(began).Round(time.Second))
						}
					}
				})
			}
			running.Wait()
		})
	}
	if len(shared) > 0 {
		together("together", shared, *side)
	}
	if len(alone) > 0 {
		together("alone", alone, 1)
	}
}

// stroll is one walk on a cluster.
type stroll struct {
	walk
	cluster *cluster
	load    *load
	manual  manual
	watch   *watch
	asked   recorder
	shell   *shell
	allocs  int       // when the first command after the last end was given
	begun   bool      // since the last end
	sent    time.Time // when the last command was
}

func (p *stroll) run(ctx context.Context) error {
	p.watch = p.cluster.watch(p.job)
	defer p.cluster.unwatch(p.watch)
	client, err := api.NewClient(&api.Config{Address: p.cluster.base, HttpClient: &http.Client{Transport: &p.asked}})
	if err != nil {
		return err
	}
	p.shell = &shell{api: client, files: p.files, job: p.job, wait: func(ctx context.Context) error {
		if err := p.watch.change(ctx, time.Second); err != nil {
			return err
		}
		return ctx.Err()
	}}
	for _, a := range p.acts {
		if err := p.do(ctx, a); err != nil {
			err = fmt.Errorf("line %d: %w", a.line, err)
			if cleared := p.clear(ctx); cleared != nil {
				err = fmt.Errorf("%w; clearing up: %w", err, cleared)
			}
			return err
		}
	}
	return p.clear(ctx)
}

func (p *stroll) clear(ctx context.Context) error {
	if err := p.cluster.clear(ctx, p.job, p.watch); err != nil || !p.alone {
		return err
	}
	return p.cluster.reset(ctx)
}

func (p *stroll) do(ctx context.Context, a act) error {
	switch {
	case a.command != nil:
		return p.command(ctx, a.command)
	case a.until != nil:
		return p.until(ctx, a.until)
	}
	return p.end(ctx, a.end)
}

func (p *stroll) command(ctx context.Context, c *command) error {
	v, err := look(p.cluster.api, p.job)
	if err != nil {
		return err
	}
	if !p.begun {
		p.cluster.begin(p.watch)
		p.allocs, p.begun = len(v.allocs), true
	}
	args, err := p.shell.fill(c.args, v, p.cluster.nodes)
	if err != nil {
		return fmt.Errorf("%s: %w", c.text, err)
	}
	p.asked.take()
	p.sent = time.Now()
	verb, exit, said, err := p.shell.run(ctx, args)
	if err != nil {
		return fmt.Errorf("%s: %w", c.text, err)
	}
	if exit != c.exit {
		return fmt.Errorf("%s: ends with %d, and not with %d: %s", c.text, exit, c.exit, said)
	}
	for _, part := range c.says {
		if !strings.Contains(said, part) {
			return fmt.Errorf("%s: says %q, without %q", c.text, said, part)
		}
	}
	have := p.asked.take()
	if exit != 0 {
		return nil // it asks no more once something is refused
	}
	return p.manual.check(verb, have)
}

// until waits for a moment. It may pass: what follows is decided by what the server had then.
func (p *stroll) until(ctx context.Context, c *counted) error {
	limit := time.Now().Add(within + time.Duration(p.load.factor()*float64(slack)))
	for {
		v, err := look(p.cluster.api, p.job)
		if err != nil {
			return err
		}
		if v.have[c.section][c.text] == c.n {
			p.begun = false // what follows is a step of its own, as in the recordings
			return nil
		}
		if time.Now().After(limit) {
			return fmt.Errorf("until %s: %d x %s: does not come; there is\n%s", c.section, c.n, c.text, v.have.text(true))
		}
		if err := p.watch.change(ctx, time.Until(limit)); err != nil {
			return err
		}
	}
}

// end waits until the job is where it ended in Nomad and stays there.
func (p *stroll) end(ctx context.Context, e *end) error {
	p.begun = false
	ways := e.ways
	if len(ways) == 0 {
		ways = []step{e.step}
	}
	limit := p.sent.Add(ways[0].within + time.Duration(p.load.factor()*float64(slack)))
	still := stillness{moving: ways[0].moving()}
	for {
		v, err := look(p.cluster.api, p.job)
		if err != nil {
			return err
		}
		lowest, err := p.cluster.lowest(p.watch)
		if err != nil {
			return err
		}
		now := time.Now()
		calm := still.since(v, now).Add(stays)
		if ways[0].quiet == 0 { // nothing is ever still
			calm = now
		}
		differs := e.judge(ways, v, lowest, len(v.allocs)-p.allocs)
		switch {
		case differs == "" && !now.Before(calm):
			return nil
		case differs == "" && now.After(limit.Add(2*quiet)):
			return fmt.Errorf("it does not come to rest:\n%s", v.have.text(true))
		case differs != "" && !now.Before(limit):
			return fmt.Errorf("differs from %s, %s:\n%s", e.name(), ways[0].title, differs)
		}
		until := limit
		if differs == "" {
			until = calm
		}
		if err := p.watch.change(ctx, time.Until(until)); err != nil {
			return err
		}
	}
}

func (e *end) name() string {
	if len(e.ways) > 0 {
		return fmt.Sprintf("%s step %d", e.source, e.ways[0].number)
	}
	return e.source
}

// judge says how the job differs from the first way, unless it is as in one of them.
func (e *end) judge(ways []step, v *view, lowest, made int) string {
	first := ""
	for i, st := range ways {
		have := v.have
		if len(e.ways) == 0 { // by words: what it names
			have = sections{}
			for section := range st.want {
				have[section] = v.have[section]
			}
		}
		d := compare(st.want, have, false)
		if len(e.ways) > 0 {
			if !nearly(st.made, max(made, 0)) {
				d = append(d, difference{"made", "allocations", st.made, made})
			}
			if lowest < st.floor {
				d = append(d, difference{"floor", "running and wanted, never fewer", st.floor, lowest})
			}
		}
		if len(d) == 0 {
			return ""
		}
		if i == 0 {
			for _, x := range d {
				first += "    " + x.String() + "\n"
			}
		}
	}
	return first
}
