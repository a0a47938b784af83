package config

import (
	"cmp"
	"path"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/drover-project/drover"
)

// Template bounds what templates of tasks do on the node.
type Template struct {
	// functions that templates may not call, with * for any characters: "sprig_*"; plugin, writeToFile and sockaddr never work; default none
	FunctionDenylist []string `hcl:"function_denylist,optional"`
	Wait             *Wait    `hcl:"wait,block"`
	Bounds           *Bounds  `hcl:"wait_bounds,block"`
	Retry            *Retry   `hcl:"nomad_retry,block"`
	// longest time that a server is asked at once for what changes; duration; 5m at most; default 5m
	BlockWait string   `hcl:"block_query_wait_time,optional"`
	Rest      hcl.Body `hcl:",remain" json:"-"`
}

// Retry is how stubbornly servers are asked what templates need.
type Retry struct {
	// tries until a task fails that has no answer yet, and may be tried elsewhere; one that has an answer keeps it; 0 is no limit; default 0
	Attempts int    `hcl:"attempts,optional"`
	Backoff  string `hcl:"backoff,optional"`     // rest after the first try, which doubles; duration; default 1s
	Max      string `hcl:"max_backoff,optional"` // longest rest; duration; default 30s
}

// Retries are the tries, and the rests; what is 0 is the node's own.
func (t *Template) Retries() (attempts int, first, most time.Duration) {
	r := cmp.Or(cmp.Or(t, &Template{}).Retry, &Retry{})
	return r.Attempts, Duration(r.Backoff, 0), Duration(r.Max, 0)
}

// Wait is how long changes of templates wait whose own wait is not said.
type Wait struct {
	Min string `hcl:"min,optional"` // rest without a further change before it is rendered; duration; default 0s
	Max string `hcl:"max,optional"` // longest time since the first change; duration; default: four times min
}

// Bounds are those of the waits that templates have.
type Bounds struct {
	Min string `hcl:"min,optional"` // least rest; duration; default 0s
	Max string `hcl:"max,optional"` // most time since the first change; duration; default: no bound
}

// Waits are the wait of templates that have none, and the bounds of those that have one; nil if there are none.
func (t *Template) Waits() (wait, bounds *drover.WaitConfig) {
	if t == nil {
		return nil, nil
	}
	if w := t.Wait; w != nil {
		least := Duration(w.Min, 0)
		wait = &drover.WaitConfig{Min: &least, Max: new(Duration(w.Max, 4*least))}
	}
	if b := t.Bounds; b != nil {
		bounds = &drover.WaitConfig{Min: new(Duration(b.Min, 0))}
		if b.Max != "" {
			bounds.Max = new(Duration(b.Max, 0))
		}
	}
	return wait, bounds
}

// problems are those of the block.
func (t *Template) problems(p *problems) {
	for _, name := range cmp.Or(t, &Template{}).FunctionDenylist {
		_, err := path.Match(name, "")
		p.check(err == nil, "client.template.function_denylist", "%q is no pattern: %v", name, err)
	}
	attempts, first, most := t.Retries()
	p.check(attempts >= 0, "client.template.nomad_retry.attempts", "must not be negative, got %d", attempts)
	p.check(most == 0 || first <= most, "client.template.nomad_retry", "backoff must not be above max_backoff")
	wait, bounds := t.Waits()
	for key, w := range map[string]*drover.WaitConfig{"wait": wait, "wait_bounds": bounds} {
		p.check(w == nil || w.Max == nil || *w.Min <= *w.Max, "client.template."+key, "min must not be above max")
	}
}

// waits are the durations of the block.
func (t *Template) waits() (wait Wait, bounds Bounds) {
	t = cmp.Or(t, &Template{})
	return *cmp.Or(t.Wait, &Wait{}), *cmp.Or(t.Bounds, &Bounds{})
}
